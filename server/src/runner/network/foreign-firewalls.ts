// Other firewalls of this machine, such as those of Docker, ufw and firewalld. The kernel asks every base chain of a hook, and
// a packet that one of them drops is lost, whatever the platform's own table says. So a chain that drops what it does not
// know takes the lobbies' internet, or their way to the platform, without a message anywhere.
import { readFileSync } from 'node:fs'
import { isGone } from '../../node/procfs.ts'
import { LOBBY_PREFIX } from './addresses.ts'
import { run } from './system-command.ts'

/** Tables of platforms, which know the packets of lobbies. */
const OWN_TABLES = /^muster_[0-9a-f]{16}$/
const JUMP = /"(?:jump|goto)":\{"target":"([^"]+)"\}/g
const FAMILIES = ['ip', 'inet'] as const
/** What a lobby loses where a chain of this hook drops its packets. */
const LOSSES = {
  forward: 'lobbies have no internet',
  input: 'lobbies cannot reach the platform and DNS',
} as const
type Hook = keyof typeof LOSSES

/** `reason`: names the chain and what lobbies lose. `remedy`: commands that let their packets pass. */
export type ForeignDrop = { reason: string; remedy: string }

type Chain = { family: string; table: string; name: string; hook?: string; policy?: string }
type Rule = { family: string; table: string; chain: string; expr: object[] }
type Item = { chain?: Chain; rule?: Rule }

/** Every foreign chain that drops packets of lobbies. It must run as root. */
export async function findForeignDrops(): Promise<ForeignDrop[]> {
  const { nftables } = JSON.parse(await run(['nft', '--json', 'list', 'ruleset'])) as { nftables: Item[] }
  return [...dropsOf(nftables), ...(await legacyDrops())]
}

function dropsOf(items: readonly Item[]): ForeignDrop[] {
  const rules = items.flatMap(({ rule }) => rule ?? [])
  return items.flatMap(({ chain }) => {
    if (chain?.hook === undefined || !isHook(chain.hook) || OWN_TABLES.test(chain.table)) return []
    if (!FAMILIES.some((family) => family === chain.family)) return []
    const of_table = rules.filter(({ family, table }) => family === chain.family && table === chain.table)
    const own = of_table.filter((rule) => rule.chain === chain.name)
    if (!dropsTheRest(chain, own)) return []
    if (withJumps(of_table, chain.name).some(acceptsLobbies)) return []
    return [describe(chain, chain.hook)]
  })
}

/** The rules of a chain, and of all chains to which it leads. */
function withJumps(rules: readonly Rule[], first: string): Rule[] {
  const names = new Set([first])
  // Iterating a set visits what is added meanwhile: each chain of the table at most once.
  for (const name of names) {
    const targets = JSON.stringify(rules.filter(({ chain }) => chain === name)).matchAll(JUMP)
    for (const [, target = ''] of targets) names.add(target)
  }
  return rules.filter(({ chain }) => names.has(chain))
}

const isHook = (hook: string): hook is Hook => Object.hasOwn(LOSSES, hook)

/** Whether a packet is dropped that no rule with a condition accepts. */
function dropsTheRest({ policy }: Chain, rules: readonly Rule[]): boolean {
  const end = rules.find((rule) => !has(rule, 'match', 'xt') && has(rule, 'accept', 'drop', 'reject'))
  return end === undefined ? policy === 'drop' : !has(end, 'accept')
}

/** A rule about the interfaces of lobbies, which accepts. */
function acceptsLobbies(rule: Rule): boolean {
  const condition = `{"meta":{"key":"iifname"}},"right":"${LOBBY_PREFIX}`
  return has(rule, 'accept') && JSON.stringify(rule.expr).includes(condition)
}

const has = ({ expr }: Rule, ...names: string[]): boolean =>
  expr.some((one) => names.some((name) => Object.hasOwn(one, name)))

function describe({ family, table, name }: Chain, hook: Hook): ForeignDrop {
  const reason = `chain ${name} of the nftables table ${family} ${table} drops their packets: ${LOSSES[hook]}`
  // Chains of iptables are changed by iptables, which cannot read rules of nft.
  if (family === 'ip' && table === 'filter' && name === hook.toUpperCase()) {
    return { reason, remedy: iptables('iptables', hook) }
  }
  const insert = `nft insert rule ${family} ${table} ${name}`
  const replies = `${insert} oifname '"${LOBBY_PREFIX}*"' ct state established,related accept`
  const commands = [`${insert} iifname '"${LOBBY_PREFIX}*"' accept`, ...(hook === 'forward' ? [replies] : [])]
  return { reason, remedy: commands.join(' && ') }
}

function iptables(program: string, hook: Hook): string {
  const insert = `${program} -I ${hook.toUpperCase()}`
  const replies = `${insert} -o ${LOBBY_PREFIX}+ -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`
  return [`${insert} -i ${LOBBY_PREFIX}+ -j ACCEPT`, ...(hook === 'forward' ? [replies] : [])].join(' && ')
}

/** The older iptables, whose tables nft does not list. */
async function legacyDrops(): Promise<ForeignDrop[]> {
  if (!legacyTables().includes('filter')) return []
  const listed = await run(['iptables-legacy', '-w', '-S']).catch(() => '')
  const lines = listed.split('\n')
  const hooks = Object.keys(LOSSES) as Hook[]
  return hooks.flatMap((hook) => {
    const is_dropping = lines.includes(`-P ${hook.toUpperCase()} DROP`)
    const is_accepted = lines.some((line) => line.includes(` -i ${LOBBY_PREFIX}`) && line.endsWith('-j ACCEPT'))
    if (!is_dropping || is_accepted) return []
    const reason = `chain ${hook.toUpperCase()} of the iptables-legacy table filter drops their packets: ${LOSSES[hook]}`
    return [{ reason, remedy: iptables('iptables-legacy', hook) }]
  })
}

function legacyTables(): string[] {
  try {
    return readFileSync('/proc/net/ip_tables_names', 'latin1').split('\n')
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}
