/** Parts of the clients that the dialogs offer, in percent. */
export const PARTS = [1, 5, 10, 25, 50, 75]
