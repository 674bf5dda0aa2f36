// The section of a version in CHANGELOG.md, which is the text of its release.

/** Throws an Error with a sentence when there is none, or it is empty. */
export function releaseNotes(changelog: string, version: string): string {
  const lines = changelog.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`## [${version}]`))
  if (start === -1) throw new Error(`CHANGELOG.md has no section ## [${version}]. Write it, and run this again.`)
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith('## '))
  const section = lines.slice(start + 1, length === -1 ? undefined : start + 1 + length).join('\n')
  if (!/^- /m.test(section)) throw new Error(`The section ## [${version}] of CHANGELOG.md names no change.`)
  return `# Muster ${version}\n\n${section.trim()}\n`
}
