// How much of a list one response carries, newest first, and how it says that there is more.

/** Items of a list of the cloud API, unless the operation has a smaller maximum. */
export const LIST_MAX = 1_000

/** Of rows of which one more than `count_max` was asked for. */
export function cut<Row>(rows: readonly Row[], count_max = LIST_MAX): { rows: Row[]; is_cut: boolean } {
  return { rows: rows.slice(0, count_max), is_cut: rows.length > count_max }
}
