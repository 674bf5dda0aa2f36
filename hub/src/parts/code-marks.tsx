// A text of the platform, in which names of members, settings and codes stand between backticks.

export function CodeMarks({ text }: { text: string }) {
  return text.split('`').map((part, at) =>
    at % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text never move.
      <code key={at} className="wrap-anywhere">
        {part}
      </code>
    ) : (
      part
    ),
  )
}
