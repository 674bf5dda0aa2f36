// `muster mcp`: the operations of the API as tools for an agent.
import type { Command } from 'commander'
import type { McpOptions } from '../mcp/serve.ts'
import { withPlatform } from '../options.ts'
import type { Terminal } from '../terminal.ts'

export function addMcpCommand(program: Command, terminal: Terminal): void {
  withPlatform(program.command('mcp'))
    .description(
      'Serve the operations of the API as tools for an agent (MCP over standard input and output), read-only.',
    )
    .option('--write', 'also the operations that change something')
    .option('--allow <group...>', 'only operations whose id begins with one of these, for example games.versions')
    .addHelpText('after', '\nThe agent acts with your token.')
    .action(async (options: McpOptions) => (await import('../mcp/serve.ts')).serveMcp(terminal, options))
}
