// Names of files and folders of lobbies that several parts of the runner use.
import { join } from 'node:path'

/** Files of the runner itself, beside the folders of lobbies. */
export const platformFolder = (lobbies_folder: string): string => join(lobbies_folder, '.platform')

/** An empty file for each lobby that runs, or that has ended and is not cleaned up yet (unfinished.ts). */
export const unfinishedFolder = (lobbies_folder: string): string => join(lobbies_folder, '.unfinished')

/** In the folder of a lobby: how it ended. */
export const ENDED_FILE = 'ended.json'
