// Calls as React hooks: reads are cached and repeated, changes report their outcome as a toast.
import type { Operation, ResponseOf } from '@musterhost/contract'
import {
  QueryClient,
  type UseQueryResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import { useCallback, useMemo } from 'react'
import { showToast } from '../toasts.ts'
import { call, type Input } from './call.ts'
import { CallError } from './call-error.ts'
import { confirmed } from './confirmed.ts'
import type { Described } from './describe.ts'

/** Repeats of a read that failed for a passing reason. */
const REPEATS_MAX = 3
/** A read is not repeated when a page opens again within this time. */
const FRESH_MS = 5_000
/** Pages that one list loads at most. */
const LIST_PAGES_MAX = 200

export const query_client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      retry: (count, error) => count < REPEATS_MAX && isPassing(error),
      refetchOnWindowFocus: true,
    },
  },
})

/** Whether the same call may succeed in a moment. */
function isPassing(error: unknown): boolean {
  return error instanceof CallError && (error.code === 'UNREACHABLE' || error.status === 503 || error.status === 502)
}

export type ReadOptions = {
  /** Repeats the read after this time while the page is visible. */
  every_ms?: number
  enabled?: boolean
}

export function useCall<O extends Operation>(
  operation: Described<O>,
  input: Input<O>,
  { every_ms, enabled = true }: ReadOptions = {},
): UseQueryResult<ResponseOf<O>, CallError> {
  return useQuery<ResponseOf<O>, CallError>({
    queryKey: [operation.id, input],
    queryFn: ({ signal }) => call(operation, input, signal),
    refetchInterval: every_ms ?? false,
    enabled,
    placeholderData: (previous) => previous,
  })
}

/** A list that is loaded page by page. `next` returns the input of the page after a response; null after the last one. */
export function usePages<O extends Operation>(
  operation: Described<O>,
  first: Input<O>,
  next: (response: ResponseOf<O>) => Input<O> | null,
  { every_ms, enabled = true }: ReadOptions = {},
) {
  return useInfiniteQuery<
    ResponseOf<O>,
    CallError,
    { pages: ResponseOf<O>[]; pageParams: Input<O>[] },
    unknown[],
    Input<O>
  >({
    queryKey: [operation.id, 'pages', first],
    queryFn: ({ pageParam, signal }) => call(operation, pageParam as Input<O>, signal),
    initialPageParam: first,
    getNextPageParam: (last, pages) => (pages.length < LIST_PAGES_MAX ? next(last) : null),
    refetchInterval: every_ms ?? false,
    enabled,
  })
}

export type ChangeOptions<O extends Operation> = {
  /** What the toast says after success. */
  done?: string | ((response: ResponseOf<O>) => string)
  onDone?: (response: ResponseOf<O>, input: Input<O>) => void
  /** The caller shows errors itself, at the member of the form. */
  shows_errors?: boolean
}

/** Runs a change, with a passkey where the platform asks for one. Afterwards every read on the page is repeated, so nothing old stays visible. */
export function useChange<O extends Operation>(operation: Described<O>, options: ChangeOptions<O> = {}) {
  const client = useQueryClient()
  return useMutation<ResponseOf<O>, CallError, Input<O>>({
    mutationFn: (input) => confirmed(() => call(operation, input)),
    async onSuccess(response, input) {
      const { done } = options
      if (done !== undefined) showToast('good', typeof done === 'function' ? done(response) : done)
      await client.invalidateQueries()
      options.onDone?.(response, input)
    },
    onError(error) {
      if (options.shows_errors !== true) showToast('bad', error.message, error.ray_id)
    },
  })
}

/** Repeats all reads of an operation. */
export function useRefresh(): (...operations: { id: string }[]) => void {
  const client = useQueryClient()
  return useCallback(
    (...operations) => {
      for (const { id } of operations) void client.invalidateQueries({ queryKey: [id] })
    },
    [client],
  )
}

/** All entries of the loaded pages. */
export function useEntries<P, E>(pages: readonly P[] | undefined, entriesOf: (page: P) => readonly E[]): E[] {
  // biome-ignore lint/correctness/useExhaustiveDependencies: callers pass a new function at each render; it depends on nothing.
  return useMemo(() => (pages ?? []).flatMap((page) => [...entriesOf(page)]), [pages])
}
