// Examples in JavaScript, TypeScript and HTML are type-checked against the SDK as it is, all of them in one pass.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type Script = { page: string; line: number; language: string; text: string }

const OPTIONS = {
  allowJs: true,
  checkJs: true,
  // Examples are plain JavaScript, which does not say what may be undefined.
  strict: false,
  target: 'esnext',
  module: 'nodenext',
  lib: ['esnext', 'dom', 'dom.iterable'],
  types: ['node'],
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  noEmit: true,
}
const SCRIPT = /<script type="module"[^>]*>([\s\S]*?)<\/script>/

/** `folder` is empty and becomes a project in which the SDK is installed. */
export function requireTypes(root: string, folder: string, scripts: readonly Script[]): void {
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  symlinkSync(join(root, 'sdk/src'), join(folder, 'sdk'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const files = scripts.map(({ page, line, language, text }) => {
    const file = `${page.replaceAll(/\W/g, '-')}-line-${line}.${language === 'ts' ? 'ts' : 'js'}`
    const code = language === 'html' ? SCRIPT.exec(text)?.[1] : text
    assert.ok(code, `${page}:${line} has no script`)
    writeFileSync(join(folder, file), code)
    return file
  })
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, files }))
  const tsc = join(root, 'node_modules/.bin/tsc')
  const { status, stdout, stderr } = spawnSync(tsc, ['-p', folder, '--pretty', 'false'], { encoding: 'utf8' })
  assert.equal(status, 0, `${stdout}${stderr}`)
}
