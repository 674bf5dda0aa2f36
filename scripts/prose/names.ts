// Names that were given up, with the name that took their place. They are looked for among the identifiers of programs
// and the names of files, case by case.

export type NameRule = {
  old: readonly string[]
  instead: string
  /** Folders that the rule holds in; without: all. */
  within?: readonly string[]
}

export const IDENTIFIERS: readonly NameRule[] = [
  { old: ['Desk', 'desk'], instead: 'MatchmakerContext, matchmaker' },
  { old: ['FindWish', 'FetchWish', 'Wish'], instead: 'FindRequest, FetchRequest, request' },
  { old: ['Visitor', 'visitorOf'], instead: 'Requester, requesterOf' },
  { old: ['Sitter', 'sitter', 'sitters'], instead: 'Entrant, entrant' },
  { old: ['Office', 'office'], instead: 'Leadership' },
  { old: ['Tale', 'tale', 'Teller', 'teller', 'createTeller'], instead: 'DecisionLog, record' },
  { old: ['Shelf', 'Shelves', 'shelf', 'shelves'], instead: 'OpenLobbyIndex, by_free_party_places' },
  { old: ['Bench'], instead: 'IdleGroup', within: ['server/'] },
  { old: ['Place'], instead: 'LobbyKey, LobbyCount or RouteTarget', within: ['server/src/'] },
  { old: ['Images'], instead: 'RowSnapshots', within: ['server/'] },
  { old: ['HOLD_MS'], instead: 'RECOVERY_WAIT_MS_MAX or SEAT_HOLD_MS' },
  { old: ['Door', 'createDoor'], instead: 'MountOptions, Listener, PortProbe or defaults' },
  { old: ['Wire', 'Wires', 'createWires', 'WiresOptions'], instead: 'UpstreamConnection, UpstreamPool' },
  { old: ['createUpstreams'], instead: 'createRouter' },
  { old: ['Keeper'], instead: 'ClientConnectionHandlers' },
  { old: ['outliveWrites'], instead: 'tolerateWriteErrors' },
  { old: ['Crowd', 'createCrowd', 'crowd'], instead: 'ConnectionLimits', within: ['server/'] },
  { old: ['PortCrowd', 'createPortCrowd'], instead: 'PortConnectionLimits' },
  { old: ['keepToItself'], instead: 'addSecurityHeaders' },
  { old: ['closeGently'], instead: 'lingerClose' },
  { old: ['Names', 'createNames'], instead: 'Dns, createDns', within: ['server/'] },
  { old: ['Trust', 'createTrust'], instead: 'CertificateAuthorities' },
  { old: ['createTurns', 'Turns'], instead: 'createReadLimit, KeyQueue' },
  { old: ['Looks', 'createLooks'], instead: 'Poller, createPoller' },
  { old: ['Waiting', 'createWaiting'], instead: 'LongPoll, createLongPoll' },
  { old: ['holdGroup', 'holdUpload', 'holdObjects'], instead: 'lockGroup, lockUpload, lockObjects' },
  { old: ['letGo'], instead: 'release' },
  { old: ['keepRole'], instead: 'superviseRole' },
  { old: ['giveBack'], instead: 'freeBuffer' },
  { old: ['clientBucket'], instead: 'clientKey' },
  { old: ['clientAddress'], instead: 'clientIp' },
  { old: ['PORT_REST_MS'], instead: 'QUARANTINE_MS' },
  { old: ['startFolding'], instead: 'startAggregation' },
  { old: ['Standing', 'createStanding', 'readStanding'], instead: 'LiveState, createLiveState, readLiveState' },
  { old: ['renameThing'], instead: 'renameRecord' },
  { old: ['ClientPlace', 'HeldPlace', 'NoPlace', 'places_max'], instead: 'ClientSlot, HeldSlot, NoSlot, slots_max' },
  {
    old: ['takenPlaces', 'freePlaces', 'holdPlaces', 'partyPlaces'],
    instead: 'takenSeats, freeSeats, holdSeats',
    within: ['server/src/'],
  },
  {
    old: ['choosePlace', 'ChoosePlace', 'LobbyPlace'],
    instead: 'chooseNode, ChooseNode, ChosenNode',
    within: ['server/src/'],
  },
]

/** The last part of a path, below server/. */
export const FILES: readonly NameRule[] = [
  { old: ['desk.ts', 'party-desk.ts'], instead: 'seats/seats.ts, calls/parties.ts' },
  { old: ['wishes.ts', 'visitor.ts'], instead: 'seats/request.ts, seats/requester.ts' },
  { old: ['limited.ts', 'hands.ts'], instead: 'seats/decisions.ts, lobby-admin.ts' },
  { old: ['tale.ts'], instead: 'explanations/decision-log.ts' },
  { old: ['shelves.ts'], instead: 'book/open-lobbies.ts' },
  { old: ['census.ts', 'gauges.ts'], instead: 'metrics/lobby-counts.ts, metrics/metrics.ts' },
  { old: ['touched.ts'], instead: 'projection/affected-rows.ts' },
  { old: ['wires.ts', 'upstreams.ts'], instead: 'proxy/upstream-pool.ts, proxy/router.ts' },
  { old: ['early-answers.ts'], instead: 'node-internals.ts' },
  { old: ['crowd.ts', 'port-crowd.ts'], instead: 'connection-limits.ts, port-connection-limits.ts' },
  { old: ['reflection.ts', 'udp-welcome.ts'], instead: 'address-validation.ts, udp-handshake.ts' },
  { old: ['own-pages.ts', 'rest-of-body.ts'], instead: 'security-headers.ts, lingering-close.ts' },
  { old: ['exact-data.ts'], instead: 'exact-json.ts' },
  { old: ['give-back.ts', 'prepared.ts'], instead: 'free-buffer.ts, json-text.ts' },
  { old: ['far.ts', 'kept.ts'], instead: 'lobby-logs/remote.ts, files.ts' },
  { old: ['standing.ts', 'turns.ts'], instead: 'live-state.ts, read-limit.ts, key-queue.ts' },
  { old: ['inherit.ts', 'start-rays.ts'], instead: 'adopt-renamed.ts, start-trace.ts' },
  { old: ['previous.ts'], instead: 'orphaned-roles.ts' },
]
