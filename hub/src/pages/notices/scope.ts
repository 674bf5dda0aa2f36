// What the targets of a page belong to, and what the person may do there.
export type NoticeScope = {
  query: { game_id?: string; group_id?: string }
  /** The option of the command line, after a blank. */
  option: string
  crumbs: { text: string; to: string }[]
  may_change: boolean
}
