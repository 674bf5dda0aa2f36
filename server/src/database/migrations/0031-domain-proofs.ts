// Only DNS proves a claim to a custom domain. `proof` is the kind of the last proof that was found: `cname`, `txt`, or
// `http` for a domain that became active while an HTTP fetch was a proof; such a domain stays active. A domain that an
// owner has given up is in `released_domains`, with the group that had it.
export const statements = `
  alter table domains rename column nonce to txt_value;
  alter table domains add column proof text;
  update domains set proof = 'http' where verification_status = 'active';
  create index domains_active_reversed on domains (reverse(domain) text_pattern_ops)
    where verification_status = 'active';

  create table released_domains (
    domain text primary key,
    group_id uuid not null,
    release_ts timestamptz(3) not null
  );
  create index on released_domains (release_ts);
`
