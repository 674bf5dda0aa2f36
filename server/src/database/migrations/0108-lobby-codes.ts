// Codes of lobbies, with which players join. Null: the lobby has none.
export const statements = `
  alter table lobbies add column code text;
`
