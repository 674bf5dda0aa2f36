// A role as a process that can be killed: it accepts trunks with the proof of its second argument on the port of its first. A
// request for `/matchmaker/wait` has no response; every other one gets its path.
import { createServer, type RequestListener } from 'node:http'
import { RoleTrunks } from '../../src/peers/trunks.ts'

const [port, proof] = process.argv.slice(2)
const role = new RoleTrunks(proof!)
const handle: RequestListener = (request, response) => {
  if (request.url !== '/matchmaker/wait') response.end(request.url)
}
const server = createServer({ shouldUpgradeCallback: (request) => role.isTrunk(request) }, handle)
server.on('upgrade', (request, socket, head) => role.accept(request, socket, head, handle))
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('listens\n'))
