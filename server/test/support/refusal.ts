import assert from 'node:assert/strict'
import { ApiError } from '@musterhost/contract'

/** Returns the error of the API with which the call fails. Throws any other error, and when the call succeeds. */
export async function failureOf(call: Promise<unknown>): Promise<ApiError> {
  try {
    await call
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  assert.fail('the call should have been refused')
}
