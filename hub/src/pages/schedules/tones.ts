// The colours of what became of a run.
export const OUTCOME_TONES = {
  waiting: 'plain',
  active: 'good',
  done: 'good',
  failed: 'bad',
  missed: 'bad',
  cancelled: 'warn',
} as const
