// One world that every promise about bad input is tried on, and the steps that the promises share.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { ErrorBody, ErrorCode, ErrorDetail, Operation } from '@musterhost/contract'
import { startPlatform } from '../support/platform.ts'
import { type Answer, type Ask, requireRefusal } from './ask.ts'
import { askFor, callOf, rightTokenOf } from './calls.ts'
import { dump } from './dump.ts'
import { createWorld, type World } from './world.ts'

/** One world for all of them: nothing here may change it. */
let known: World | undefined
export const world = (): World => {
  assert.ok(known)
  return known
}
export const promises: [name: string, keep: () => Promise<void>][] = []
export const promise = (name: string, keep: () => Promise<void>): void => void promises.push([name, keep])

export function detailsOf(body: ErrorBody): Pick<ErrorDetail, 'path' | 'reason'>[] {
  const errors = body.metadata.errors as ErrorDetail[]
  for (const { message } of errors) assert.ok(message.length > 0)
  return errors.map(({ path, reason }) => ({ path, reason }))
}

/** Sends a body as it is, with the right credential. */
export function send(operation: Operation, body: string | Buffer, more: Ask = {}): Promise<Answer> {
  return askFor(world(), operation, callOf(world(), operation), rightTokenOf(world(), operation), { body, ...more })
}

export async function refusedAs(operation: Operation, codes: ErrorCode[], what: string, answer: Promise<Answer>) {
  try {
    return requireRefusal(await answer, ...codes)
  } catch (error) {
    throw new Error(`${operation.id}: ${what.slice(0, 80)}`, { cause: error })
  }
}

export async function changesNothing(steps: () => Promise<void>): Promise<void> {
  const { platform } = world()
  const before = await dump(platform)
  await steps()
  assert.equal(await dump(platform), before)
}

/** Starts the platform whose world all promises share. */
export async function startWorld(t: TestContext): Promise<void> {
  known = await createWorld(await startPlatform(t))
}
