// Operate: allocator.
import type { Command } from 'commander'
import type { AllocatorCommandOptions } from '../allocator/allocator.ts'
import { parseWhole, withNamespace } from '../options.ts'
import type { Terminal } from '../terminal.ts'

const PORT_MAX = 65_535
const PORT_DEFAULT = 8443

export function addAllocatorCommand(program: Command, terminal: Terminal): void {
  withNamespace(program.command('allocator'))
    .description(
      'Serve the allocation service of Agones: a backend that allocates game servers there gets lobbies here.',
    )
    .option('--listen <address>', 'the address at which it listens', '127.0.0.1')
    .option('--port <number>', 'the port', parseWhole(0, PORT_MAX), PORT_DEFAULT)
    .option('--cert <file>', 'the certificate, in PEM; without it: no TLS')
    .option('--key <file>', 'the key of the certificate, in PEM')
    .option('--client-ca <file>', 'only clients with a certificate of this authority, in PEM, which need no token')
    .option('--mode <name>', 'the game mode of a request that names no fleet', 'default')
    .addHelpText('after', '\nMUSTER_TOKEN is a cloud token of the game: muster tokens create. See docs/moving.md.')
    .action(async (options: AllocatorCommandOptions) => {
      const { runAllocator } = await import('../allocator/allocator.ts')
      await runAllocator(terminal, options)
    })
}
