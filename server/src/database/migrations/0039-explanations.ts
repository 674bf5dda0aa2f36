// Tables by what their rows are: the explanation of a request for a seat, and the spans of a request in one role.
export const statements = `
  alter table rays rename to explanations;
  alter index rays_pkey rename to explanations_pkey;
  alter index rays_namespace_id_create_ts_idx rename to explanations_namespace_id_create_ts_idx;
  alter index rays_create_ts_idx rename to explanations_create_ts_idx;
  alter table explanations rename constraint rays_namespace_id_fkey to explanations_namespace_id_fkey;

  alter table ray_parts rename to ray_spans;
  alter index ray_parts_ray_id_idx rename to ray_spans_ray_id_idx;
  alter index ray_parts_owner_id_ts_idx rename to ray_spans_owner_id_ts_idx;
  alter index ray_parts_ts_idx rename to ray_spans_ts_idx;
`
