// Sentences of the platform. Names of members and codes in them stand between backticks.

export function Sentence({ text }: { text: string }) {
  const parts = text.split('`')
  return (
    <p className="max-w-3xl wrap-anywhere">
      {parts.map((part, at) =>
        at % 2 === 1 ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text never move.
          <code key={at}>{part}</code>
        ) : (
          part
        ),
      )}
    </p>
  )
}

export function Sentences({ texts }: { texts: readonly string[] }) {
  return (
    <div className="flex flex-col gap-1">
      {texts.map((text) => (
        <Sentence key={text} text={text} />
      ))}
    </div>
  )
}
