// `muster mcp` driven by the official client library: what an agent sees, what it may change, and what stays hidden.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import {
  createCloudToken,
  createGame,
  createGameNamespaceTokenPublic,
  createGroup,
  getGameById,
} from '@musterhost/contract'
import { MUSTER } from '../../server/test/run/built-programs.ts'
import { startPlatform } from '../../server/test/support/platform.ts'
import { createMuster } from './program.ts'

type Result = { content: { text: string }[]; isError?: boolean }

test('an agent reads the platform by MCP, changes it only with --write, and sees no secret', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const { group_id } = await platform.client.call(createGroup, { body: { display_name: 'Developers' } })
  const { game_id } = await platform.client.call(createGame, {
    body: { display_name: 'Arena', developer_group_id: group_id },
  })
  const { token } = await platform.client.call(createCloudToken, { params: { game_id } })
  const { game } = await platform.client.call(getGameById, { params: { game_id } })
  const { namespace_id } = game.namespaces[0]!
  const public_token = await platform.client.call(createGameNamespaceTokenPublic, { params: { game_id, namespace_id } })

  const open = async (...args: string[]) => {
    const { cwd, env } = createMuster(t, { MUSTER_URL: platform.edge_url, MUSTER_TOKEN: token })
    const client = new Client({ name: 'test', version: '1' })
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [MUSTER, 'mcp', ...args],
      cwd,
      env: { ...env },
      stderr: 'ignore',
    })
    await client.connect(transport)
    t.after(() => client.close())
    const { tools } = await client.listTools()
    const call = async (name: string, given: Record<string, unknown>): Promise<Result> =>
      (await client.callTool({ name, arguments: given })) as Result
    return { tools, call }
  }

  await t.test('without --write every tool is a read, with a description and a schema of its members', async () => {
    const { tools, call } = await open()
    assert.ok(tools.length > 30, `${tools.length} tools`)
    for (const { name, description, annotations, inputSchema } of tools) {
      assert.match(name, /^\w{1,64}$/)
      assert.ok((description ?? '').length > 10, name)
      assert.equal(annotations?.readOnlyHint, true, name)
      assert.equal(inputSchema.type, 'object')
    }
    const read = await call('games_getGameById', { game_id })
    assert.equal((JSON.parse(read.content[0]!.text) as { game: { game_id: string } }).game.game_id, game_id)
    const write = await call('games_updateGame', { game_id })
    assert.equal(write.isError, true)
  })

  await t.test('no tool hands out a credential, and none is in a result', async () => {
    const { tools, call } = await open('--write')
    const names = tools.map(({ name }) => name)
    assert.deepEqual(
      names.filter((name) => /create\w*token|^auth_identity|^devices|export|lobbies_(?:find|join|create)$/i.test(name)),
      [],
    )
    assert.ok(names.includes('games_createGame'))
    for (const name of ['games_getGameById', 'games_getGames', 'auth_inspect']) {
      const { content } = await call(name, name === 'games_getGameById' ? { game_id } : {})
      assert.ok(!content[0]!.text.includes(token) && !content[0]!.text.includes(public_token.token))
    }
  })

  await t.test('with --write and --allow it changes only what the group names', async () => {
    const { tools, call } = await open('--write', '--allow', 'games.namespaces')
    assert.ok(tools.every(({ name }) => name.startsWith('games_namespaces_')))
    const name = 'games_namespaces_updateGameNamespaceMatchmakerConfig'
    const changed = await call(name, { game_id, namespace_id, body: { lobby_count_max: 7 } })
    assert.equal(changed.isError, undefined, JSON.stringify(changed.content))
    const { content } = await call('games_namespaces_getGameNamespaceById', { game_id, namespace_id })
    assert.match(content[0]!.text, /"lobby_count_max":7/)
  })

  await t.test('a wrong argument is refused with its name, and cannot leave the path of its operation', async () => {
    const { call } = await open()
    const typo = await call('games_getGameById', { gameid: game_id })
    assert.deepEqual([typo.isError, typo.content[0]!.text.includes('Did you mean game_id?')], [true, true])
    const step_up = await call('games_getGameById', { game_id: '..' })
    assert.deepEqual([step_up.isError, step_up.content[0]!.text], [true, 'game_id must be given.'])
    const unknown = await call('games_getGameById', { game_id: '00000000-0000-0000-0000-000000000000' })
    assert.match(unknown.content[0]!.text, /Ray id: /)
  })

  await t.test('a group that does not exist is wrong usage', async (step) => {
    const muster = createMuster(step, { MUSTER_URL: platform.edge_url, MUSTER_TOKEN: token })
    const { code, stderr } = await muster.run(['mcp', '--allow', 'games.version'])
    assert.equal(code, 2)
    assert.match(stderr, /Did you mean games\.versions\?/)
  })
})
