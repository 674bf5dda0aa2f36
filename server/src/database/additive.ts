// Whether a migration only adds. Programs of the version before continue to work on the tables that it makes, so both versions
// may run during an upgrade. The rule knows the statements that add, and takes every other one for a change.
//
// Added columns must accept rows of a program that does not know them: they are nullable or have a default. An added index or
// constraint of an existing table could refuse such rows, so only plain indexes count as added. A check that is dropped refuses
// nothing any more.

const ADDS: readonly RegExp[] = [
  /^create (unlogged )?table (if not exists )?\w+ \(/,
  /^create index (if not exists )?\w+ on /,
  /^alter table \w+( add column (if not exists )?\w+ [^,]*,?)+$/,
  /^alter table \w+ alter column \w+ drop not null$/,
  /^alter table \w+ drop constraint if exists \w+_check$/,
  /^comment on /,
  /^insert into /,
]

/** Constraints of an added column that rows without it may break. */
const REFUSES = /\b(unique|primary key|references|check)\b/
/** A row of a new table must not keep a row of another one from being deleted. */
const KEEPS_OTHERS = /\breferences\b/
const FOLLOWS = /\breferences \w+( \(\w+\))? on delete (cascade|set null)/g
const NOT_NULL = /\bnot null\b/

export function isAdditive(statements: string): boolean {
  const made = new Set<string>()
  return statementsOf(statements).every((statement) => {
    const table = /^create (?:unlogged )?table (?:if not exists )?(\w+)/.exec(statement)?.[1]
    if (table !== undefined) {
      made.add(table)
      if (KEEPS_OTHERS.test(statement.replace(FOLLOWS, ''))) return false
    }
    const target = /^(?:alter table|create (?:unique )?index \w+ on) (\w+)/.exec(statement)?.[1]
    // A table that the same migration makes has no older user.
    if (target !== undefined && made.has(target)) return true
    return ADDS.some((form) => form.test(statement)) && addsAcceptably(statement)
  })
}

function addsAcceptably(statement: string): boolean {
  if (!statement.startsWith('alter table')) return true
  const columns = statement.split(/\badd column\b/).slice(1)
  return columns.every((column) => !REFUSES.test(column) && (!NOT_NULL.test(column) || /\bdefault\b/.test(column)))
}

/** In lower case, with single spaces, and without comments. Nothing here contains a semicolon in a string. */
function statementsOf(text: string): string[] {
  return text
    .replace(/--[^\n]*/g, ' ')
    .toLowerCase()
    .replace(/\s+/g, ' ')
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}
