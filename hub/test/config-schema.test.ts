import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VersionConfig } from '@musterhost/contract'
import { type ConfigSchema, emptyValueOf, membersOf, schemasAt, valuesOf } from '../src/pages/config/schema.ts'

const SCHEMA = VersionConfig as unknown as ConfigSchema
const at = (path: string) => schemasAt(SCHEMA, path.split('.'))

test('the editor knows the members and values of matching, down to a rule and its widening', () => {
  const mode = 'matchmaker.game_modes.duel'
  const matching = membersOf(at(`${mode}.matching`))
  for (const name of ['size', 'teams', 'rules', 'attributes', 'start_after_s', 'fill_open_lobbies']) {
    assert.ok(matching.get(name)?.description, name)
  }
  assert.equal(emptyValueOf(matching.get('rules')!), '[]')
  const rule = membersOf(at(`${mode}.matching.rules.0`))
  for (const name of ['near', 'same', 'share', 'sum', 'ping', 'within', 'widen', 'optional_after_s']) {
    assert.ok(rule.get(name)?.description, name)
  }
  assert.deepEqual([...membersOf(at(`${mode}.matching.rules.0.widen`)).keys()].sort(), ['by', 'every_s', 'to'])
  assert.deepEqual(valuesOf(at(`${mode}.matching.attributes.skill.from`)), ['"game"', '"player"', '"rating"'])
})
