import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAdditive } from './additive.ts'
import { BASELINE, MIGRATIONS } from './migrations/index.ts'

/** Migrations for which all nodes must stop, with the reason. */
const STOP_ALL: Readonly<Record<string, string>> = {}

test('a migration only adds, so that the version before works on its tables', () => {
  const others = MIGRATIONS.filter((migration) => migration !== BASELINE && !isAdditive(migration.statements))
  assert.deepEqual(
    others.map(({ name }) => name),
    Object.keys(STOP_ALL),
  )
})

for (const statements of [
  'create table a (b integer not null); create index c on a (b); alter table a add column d text not null;',
  'alter table a add column b text; alter table a add column c integer not null default 0, add column d text;',
  '-- drop table a;\n  CREATE INDEX b ON a (c) WHERE d IS NULL;',
  'create table a (b integer); create unique index c on a (b)',
  'create table a (b integer references c on delete cascade)',
  'alter table a alter column b drop not null',
  'alter table a drop constraint if exists a_check',
]) {
  test(`it adds: ${statements}`, () => assert.equal(isAdditive(statements), true))
}

for (const statements of [
  'drop table a',
  'alter table a drop column b',
  'alter table a rename column b to c',
  'alter table a add column b text not null',
  'alter table a add column b text, drop column c',
  'alter table a add column b integer default 0 check (b > 0)',
  'alter table a alter column b type bigint',
  'alter table a add constraint b unique (c)',
  'alter table a drop constraint if exists a_pkey',
  'create unique index b on a (c)',
  'create table a (b integer references c)',
  'update a set b = 1',
  'delete from a',
  'do $$ begin end $$',
  'create index b on a (c); truncate a',
]) {
  test(`it changes what is there: ${statements}`, () => assert.equal(isAdditive(statements), false))
}
