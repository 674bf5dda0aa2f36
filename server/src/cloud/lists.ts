// How much of a list one answer carries, newest first.

export const LIST_MAX = 1_000
