// Sentences of the platform.
import { CodeMarks } from '../../parts/code-marks.tsx'

export function Sentence({ text }: { text: string }) {
  return (
    <p className="max-w-3xl wrap-anywhere">
      <CodeMarks text={text} />
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
