import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { lockFolder } from '../../src/supervisor/lock.ts'

const HOLDER = fileURLToPath(new URL('lock-holder.ts', import.meta.url))
const STARTERS = 8
const ROUNDS = 5

test('exactly one of many processes gets the folder, also after a kill of the last holder', async (t) => {
  const folder = temporaryFolder(t)
  let last: ChildProcess | null = null
  for (let round = 0; round < ROUNDS; round++) {
    const starters = await Promise.all(Array.from({ length: STARTERS }, () => startHolder(t, folder)))
    // The holder of the last round has just died, so every process finds its files.
    if (last) await kill(last)
    const answers = await Promise.all(starters.map(ask))
    const holders = starters.filter((_, index) => answers[index] === 'held')
    assert.equal(holders.length, 1, answers.join('\n'))
    for (const answer of answers) {
      if (answer !== 'held')
        assert.match(answer, /^Another Muster runs on the data folder .* MUSTER_DATA to another folder\.$/)
    }
    for (const starter of starters) if (starter !== holders[0]) await kill(starter)
    last = holders[0] ?? null
  }
})

test('a refusal names the process that has the folder', async (t) => {
  const folder = temporaryFolder(t)
  const holder = await startHolder(t, folder)
  assert.equal(await ask(holder), 'held')
  assert.throws(() => lockFolder(folder, Date.now()), new RegExp(`process ${holder.pid}, since \\d{4}-`))
  await kill(holder)
  const lock = lockFolder(folder, Date.now())
  assert.equal(lock.previous?.pid, holder.pid)
  lock.release()
})

test('a second platform in the same process is refused until the first releases the folder', (t) => {
  const folder = temporaryFolder(t)
  const first = lockFolder(folder, Date.now())
  assert.throws(() => lockFolder(folder, Date.now()), /Another Muster/)
  // The refused attempt must not have released the lock of the first.
  assert.throws(() => lockFolder(folder, Date.now()), /Another Muster/)
  first.release()
  lockFolder(folder, Date.now()).release()
})

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-lock-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

async function startHolder(t: TestContext, folder: string): Promise<ChildProcess> {
  const child = fork(HOLDER, [folder])
  t.after(() => kill(child))
  await once(child, 'message')
  return child
}

async function ask(child: ChildProcess): Promise<string> {
  child.send('take it')
  const [answer] = await once(child, 'message')
  return String(answer)
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
