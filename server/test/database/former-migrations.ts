// Databases of versions before the first release: the tables of the baseline, made by other migrations.
import { type Kysely, sql } from 'kysely'
import { type RanMigration, UNUSED_TABLES } from '../../src/database/former-migrations.ts'
import { migrate } from '../../src/database/migrate.ts'
import { BASELINE } from '../../src/database/migrations/index.ts'
import type { Schema } from '../../src/database/schema.ts'

/** Makes the tables in an empty database. `ran`: the migrations that it has run. */
export async function makeFormerDatabase(db: Kysely<Schema>, ran = FORMER_MIGRATIONS): Promise<void> {
  await migrate(db, undefined, [BASELINE])
  for (const name of UNUSED_TABLES) await db.schema.createTable(name).addColumn('n', 'integer').execute()
  await sql`delete from migrations`.execute(db)
  await sql`insert into migrations (name, checksum) select * from json_to_recordset(${JSON.stringify(ran)}) as ran (name text, checksum text)`.execute(
    db,
  )
  await sql`insert into additive_migrations values ('0096-rollbacks', 2)`.execute(db)
}

/** All of them. */
export const FORMER_MIGRATIONS: readonly RanMigration[] = [
  ['0001-first', 'f046aedb6ece12f8b066ed0a3ddee73ccddf3bfea46c8383b5a7601a4ceab084'],
  ['0002-people', '57ec73992d42f49b7f06f8dba52afed345e35c38d407eb1f7a7074e11d371090'],
  ['0003-cdn', '5d0a9c5a175dcf2e94f5b4176d3e5b5ce8ecd3c8b7f5e48e0cbee7ac36c9d3ab'],
  ['0004-domains', 'f40e03dceb84a18111504de27390c0c103928dca804f2de21e17d942b0422c2e'],
  ['0005-storage', '17962b2e32fe7310d3a9118d11e5ce34aa3738fa334b6b5232667ace39f9b355'],
  ['0006-tokens', '2d9092aea3b5bfc2eb3aef613be2bb8cee1bc42d0216543157931ef374e1c229'],
  ['0006-usage', '490edec1b05ecabf880f364d0e24638412d54f88562e54be6ad86a3e02ead22f'],
  ['0007-images', '4e1ec03d0b34f4d587916acbc502cac7df5db2e493087ee27130cffc45892f68'],
  ['0008-captcha', '99afd7108cc5a3a25196ebe582615a6083e117eeee025e9c559b2510b2cf20c5'],
  ['0009-retention', 'c017de12b543dbd21d407abef3206d76d82c6a95e13745ded9b7db2688ae7937'],
  ['0010-version-names', '85c21131cfee0574382445aef8acfa8640d129d18a6d7e7f2789309af9c26016'],
  ['0011-edge-ports', '1397c95d6e9dd2848185f8d4e9dc13350d4fda5c9383b12683dd3d2decccc87e'],
  ['0016-certificates', '6a4669a67157710f852b4cfe79d46179330a4a6ef775c731ef10add7e280fa24'],
  ['0017-identities', '94c3a110e15a495b5e33b659f576c67b9d966c33e88781da218d20adb05ccf2f'],
  ['0018-runners', '08c952474909b7eb051b1bae04166d4a64ad43a458d9f10e77e37a8ced27f7d8'],
  ['0019-draining', '4f59d98594a2e11b49bc11b70a1eaaf8a8e97cfee29468060e70f0ec35668bab'],
  ['0020-rays', '270132bfdcc9858cca04077ae4599cc74a686ba55d9a58170c09d21bdfff1b1a'],
  ['0021-parties', 'e01f53654ee2d36a01b8b29453fb6a9a6d780d268d3c4560ec26dd9d17a5d905'],
  ['0022-kv', '2a2c74aea0227e65b2d13d569cb9d88fe3009c93616b4f39602b9779543354a8'],
  ['0023-billing', '98dab195df5af06e295caa4a81a3101a1373e76cc888a8404199092234eb8436'],
  ['0024-ray-parts', '75116ea9296d01b4282eb390212ac1d0d2a21de9138c965a62c1d1191e49b89c'],
  ['0025-analytics', '3c4fe03de81678a8558ee8c77f4e7e64c18021a16a6ae9e5444f4475ba4a77c6'],
  ['0026-log-questions', '20820c31a4811de74a5cd18c3d0d53cdfb6a83e024e16ae8ddd0816f803e7fcc'],
  ['0027-analytics-lines', '60bb5d1b3c0eb3392765a2257f79cde8f650b48bba5cb1c8957fc89d0dab447c'],
  ['0028-stalled', '275afd321cea05305cff47d80f73709731dc14b17d9c81b0de7638b1a3039d6e'],
  ['0029-book-time', 'a25b651e5833c2f6790059605415505c0b4607a73efe0530477311022efa7b55'],
  ['0030-damage', 'b13dcd9ed38a7dcfc7385ea11f8d175c64f1821f023a5f0c3183532e6f40b829'],
  ['0031-domain-proofs', 'd48f6dd241cfd412048408359322caf734ff35755b1739a0b86a3b50ac875803'],
  ['0032-login-networks', '454d06041a2677e99648a590279041084c6d8d5c424260c4167728e68a64d2b0'],
  ['0033-development-hosts', 'da37ff293d7a328af9770368381c60a87e0ee5a2f0af2bf995b18cb018db3415'],
  ['0034-unused-guests', '6d91e0caa68d3972bedcda2413443137a471da9c1f1c9397431b7c2f74b09de3'],
  ['0035-listening', '84602f3ed05b028bb6b4a20c7202dba685387982b4ceef542edd26f9d195affd'],
  ['0036-build-files', '02bc29205b2a7a9e009d897ae9cbc5db94ca4296bb6853053403601bee829524'],
  ['0037-edge-reports', '843edb6b9e3df6544c89a44f556d20623f4d8e0af48eb0099eed19d9ca17ea30'],
  ['0038-packed', '90c923f783e22e641c16d5b43c94ee7e56b4f3e1400554c6b9db24c4ef77a102'],
  ['0039-explanations', '9c32aa180c253ad94726175ecf08c3ad29d22e10180e083a8916d76498bc654a'],
  ['0040-contents', 'ad5cee54b2c1b929adf5e8fd39707f1339f988495dbbe388db140a9b19286f29'],
  ['0042-audit', '2436c89c9e59d997bfe5bb1cf28fe157e1ca1bb3ca52d8145bac2c7ff163a5bc'],
  ['0043-insight', '1a8ef0cd5641071b5cfeb7675994413c9997856b793ee22ce34c1f5c9ee76cef'],
  ['0044-lobby-traffic', '1d11e677e66751e965635045bbd1f9efd13e4e9e9afdb12313cc45151b0ab5d4'],
  ['0045-deploy-messages', '539cfc300b0f62ef7c58832408e245d872971e666538abab4ed0d246179db041'],
  ['0046-namespace-expiry', '2a93f2c79adab28dee93d4b2b6ff5d00d7990581e131397254c60e2c2e658312'],
  ['0047-deploy-users', 'ee064ba699bdcfca97f32338295eace4802ec31ed64cbe3127844c65827d1380'],
  ['0048-platform-records', '43b7b47dc9ad95b122df5e555ea23be53f2f794e542423ebe75828b21cf494b5'],
  ['0049-sign-in', '49f62f8ce6ce5ed748f7724df6fa6ff330e550e75f93f39b91d82b2dabedc0d8'],
  ['0050-run-readiness', '6505703e5ad1dd2d1b9e364fdc6d4af386ae32486eb2d94e2a8cdcc13cecad07'],
  ['0051-lookups', '92c039040e33cf524eccf29191afa1c76320e96d1a02900c4b124d26588473ea'],
  ['0052-explanation-order', 'b0571f1330580785c94c4c944a50a9d75e3f95430011f135ffe841d07ef91d0f'],
  ['0053-build-images', '95b2ab547d07efb380073ca5e202d88fe993cd3182f7bb5f4304f394f3d48623'],
  ['0054-lobby-usage', 'ea0a179c387967b91000755cbee162701a028891d9e746a9dd403c1ce4d86a38'],
  ['0055-edge-seats', 'f290d5548a2cc9ee78e46065d31190ee8269e5ac213436bc74b05e802654eba0'],
  ['0060-nodes', 'b7aa7a9c154dafe8d91442ecfde913a89bf9a573410a4fe99a7c54606715b66c'],
  ['0065-shard-leases', '7fb409c3e11b303b0947c5f359bdbfe9e625166020caaf2cabf83adab26daa74'],
  ['0066-port-claims', '087410b8e037ae089de4986da3d62a73a5e5376b0da306dcb8320c947314a81d'],
  ['0070-node-links', '789a4ba80b5da0824cee6366772c475ab055f3e29b8b6423cc35a178a0660dd2'],
  ['0080-room-claims', '01c07fd45c72f783b7d0526664bc0a3aa5f32de78e0efb89bcfe54106e45d3d7'],
  ['0086-link-revocation', '54513aeb97f034bee42ac13c749b743abfc71b3779edf7240ea4e3df98f50d8b'],
  ['0087-node-edges', '752583f443d8d34fef029805c3b227f8ca20612300fd91277741fd65dedf4bab'],
  ['0088-upgrades', '90a53aa624764a5ddf3507b581ecca87afe32fd9b3fdcb2129b58b1f0b4e233b'],
  ['0091-node-refusal', '6e00a65d7537dcbb88bf8c05dc35282df95e1131a71830f3f689748903646c45'],
  ['0093-matchmaker-tls', '6b77f66119c20a52778153b3a2918e65d36a950c08a32b7e6726cc73a8d0150f'],
  ['0094-unnamed-proxies', '8568337f7a320498eee751c6a289bb4c7cfeddbe6c926d6c890b7bed72ea0c5e'],
  ['0095-refused-addresses', '3d4aa9754a80ce4008306d13b626c9a58702fb4ad1a43e27c9b39fb874e423f7'],
  ['0096-rollbacks', 'f43fb247f46e9d05a81a282cc8832394148fa0b5aad98f1827e4854e8c2f50e2'],
  ['0099-token-origins', '186a98a0e6ac0a7dce4bf2b5fa5b394f7b83ed51ccf6cccd32ea177691305433'],
  ['0100-game-secrets', 'f78f598a9a8ca174f039451ab1bfe67e5bae01b6266619d5162a11c043f991ac'],
].map(([name, checksum]) => ({ name: name!, checksum: checksum! }))
