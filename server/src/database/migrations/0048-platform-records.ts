// Records for the operator: backups and verifications that commands made, and the last run of each job.
export const statements = `
  create table backups (
    backup_id uuid primary key,
    folder text not null,
    create_ts timestamptz(3) not null,
    end_ts timestamptz(3) not null,
    row_count bigint not null,
    object_count bigint not null,
    object_bytes bigint not null,
    lacking_count integer not null
  );
  create index on backups (end_ts);

  create table verifications (
    verification_id uuid primary key,
    folder text,
    end_ts timestamptz(3) not null,
    is_sound boolean not null,
    finding_count integer not null
  );
  create index on verifications (end_ts);

  create unlogged table job_runs (
    role text not null,
    job text not null,
    end_ts timestamptz(3) not null,
    duration_ms integer not null,
    failure text,
    success_ts timestamptz(3),
    primary key (role, job)
  );
`
