// Why a node that reports starts no lobby, for machines of a Docker Swarm: `no_manager` or `not_available`. Null: it does.
export const statements = `
  alter table runners add column refusal text;
`
