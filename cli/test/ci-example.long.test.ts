// The examples of docs/ci.md, as a CI runs them: each line in a shell, with the variables of the CI, on a real platform.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createCloudToken, getGameById } from '@musterhost/contract'
import { parse } from 'yaml'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { createProject, type DeployedProject } from './deploy-steps.ts'

const PAGE = readFileSync(new URL('../../docs/ci.md', import.meta.url), 'utf8')

const blocksOf = (language: string): string[] =>
  [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(([, text]) => text!)

type Workflow = {
  env: Record<string, string>
  jobs: Record<string, { steps: { run?: string; uses?: string }[] }>
}

test('the examples of the page of CI work', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  await t.test('the workflow deploys, makes a preview, and ends it', (t) => workflow(t, platform))
  await t.test('the plain shell deploys main, and makes previews of other branches', (t) => plainShell(t, platform))
})

async function namespacesOf(platform: Platform, { game_id }: DeployedProject) {
  const { game } = await platform.client.call(getGameById, { params: { game_id } })
  return new Map(game.namespaces.map((one) => [one.name_id, one]))
}

/** Lines in a shell like that of a CI. Resolves to its stdout. */
type Shell = (lines: string, env?: Record<string, string>) => Promise<string>

/** The lines install `muster` from the platform, into a folder of the project. */
async function openCi(platform: Platform, project: DeployedProject): Promise<Shell> {
  const { token } = await platform.client.call(createCloudToken, { params: { game_id: project.game_id } })
  const npm_config_prefix = join(project.folder, '.npm-global')
  const settings = {
    npm_config_prefix,
    npm_config_cache: join(project.folder, '.npm-cache'),
    npm_config_update_notifier: 'false',
    // Nothing else is asked.
    npm_config_registry: 'http://127.0.0.1:9/',
    PATH: `${join(npm_config_prefix, 'bin')}:${project.muster.env.PATH}`,
  }
  return (lines, env = {}) =>
    new Promise((resolve, reject) => {
      const all = { ...project.muster.env, ...settings, MUSTER_TOKEN: token, CI: 'true', ...env }
      execFile('bash', ['-e', '-c', lines], { cwd: project.folder, env: all }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout)
        else reject(new Error(`${lines}\n${stderr}`, { cause: error }))
      })
    })
}

async function workflow(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, { site: { 'index.html': 'page' } })
  const shell = await openCi(platform, project)
  const { env, jobs } = parse(blocksOf('yaml')[0]!) as Workflow
  // The variables that the test sets in place of GitHub.
  assert.deepEqual(Object.keys(env), ['MUSTER_URL', 'MUSTER_TOKEN', 'PREVIEW'])
  const summary = join(project.folder, 'summary.md')
  const run = async (job: string) => {
    for (const step of jobs[job]!.steps) {
      if (step.run === undefined) assert.match(step.uses!, /^actions\/checkout@/)
      else await shell(step.run, { GITHUB_SHA: 'abc123', GITHUB_STEP_SUMMARY: summary, PREVIEW: 'pr-7' })
    }
  }
  const before = (await namespacesOf(platform, project)).get('prod')!.version_id
  await run('deploy')
  assert.notEqual((await namespacesOf(platform, project)).get('prod')!.version_id, before)
  await run('preview')
  assert.match(readFileSync(summary, 'utf8'), /^Play: http\S+--pr-7\.\S+\nExpires: \S+ \(in 3 d\)\. Each deploy/)
  assert.notEqual((await namespacesOf(platform, project)).get('pr-7')!.expire_ts, undefined)
  await run('end-preview')
  await until('the preview is gone', async () => !(await namespacesOf(platform, project)).has('pr-7'))
  assert.deepEqual(Object.keys(jobs), ['deploy', 'preview', 'end-preview'])
}

async function plainShell(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform)
  const shell = await openCi(platform, project)
  const [create, deploy, json, ...others] = blocksOf('sh')
  assert.deepEqual(others, [])
  const { game } = await platform.client.call(getGameById, { params: { game_id: project.game_id } })
  await shell('npm install --global "$MUSTER_URL/cli.tgz"')
  const token = (await shell(create!, { MUSTER_TOKEN: platform.token, GAME_ID: game.game_id })).trim()
  assert.match(token, /^cloud\./)
  await shell(deploy!, { MUSTER_TOKEN: token, BRANCH: 'main' })
  assert.ok(!(await namespacesOf(platform, project)).has('main'))
  await shell(deploy!, { MUSTER_TOKEN: token, BRANCH: 'feature/Bots' })
  assert.notEqual((await namespacesOf(platform, project)).get('feature-bots')!.expire_ts, undefined)
  await shell(json!, { MUSTER_TOKEN: token, BRANCH: 'feature/Bots' })
  const result = JSON.parse(readFileSync(join(project.folder, 'deploy.json'), 'utf8')) as Record<string, unknown>
  assert.deepEqual([result.is_new, typeof result.expire_ts], [false, 'string'])
}
