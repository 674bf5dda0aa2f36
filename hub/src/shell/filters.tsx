// A row of filters above a list. Enter or the button applies them, so that no list is read for half a word.
import { type FormEvent, type ReactNode, useState } from 'react'
import { Button } from '../parts/button.tsx'
import { type Option, SelectField, TextField } from '../parts/fields.tsx'
import type { UrlState } from './url-state.ts'

export type Filter<K extends string> = {
  name: K
  label: string
  placeholder?: string
  /** A choice instead of text. */
  options?: readonly Option[]
  type?: 'text' | 'number' | 'datetime-local'
  suggestions?: readonly string[]
}

export type FiltersProps<K extends string> = {
  label: string
  filters: readonly Filter<K>[]
  state: UrlState<K>
  onApply: (state: UrlState<K>) => void
  children?: ReactNode
}

/** Filters that a phone shows only after a press. */
const FOLDED_MIN = 4

/** The form is made anew for another state, so Back also changes what it shows. */
export function Filters<K extends string>(props: FiltersProps<K>) {
  return <FilterForm key={JSON.stringify(props.state)} {...props} />
}

function FilterForm<K extends string>({ label, filters, state, onApply, children }: FiltersProps<K>) {
  const [draft, setDraft] = useState(state)
  const is_set = filters.some(({ name }) => state[name] !== '')
  // A phone shows the list first. With few filters there is nothing to save.
  const is_long = filters.length >= FOLDED_MIN
  const [is_open, setOpen] = useState(is_set)
  function send(event: FormEvent): void {
    event.preventDefault()
    onApply(trimmed(draft))
  }
  const form = (
    <form
      aria-label={label}
      className={`flex flex-wrap items-end gap-3 ${is_long && !is_open ? 'max-sm:hidden' : ''}`}
      onSubmit={send}
    >
      {filters.map((filter) => (
        <div key={filter.name} className="w-full min-w-0 sm:w-44">
          <OneFilter
            filter={filter}
            value={draft[filter.name]}
            onChange={(value) => setDraft({ ...draft, [filter.name]: value })}
          />
        </div>
      ))}
      <div className="flex gap-2">
        <Button type="submit" kind="primary">
          Apply
        </Button>
        {is_set ? <Button onClick={() => onApply(emptied(state))}>Clear</Button> : null}
        {children}
      </div>
    </form>
  )
  if (!is_long) return form
  return (
    <>
      <div className="sm:hidden">
        <Button aria-expanded={is_open} onClick={() => setOpen(!is_open)}>
          {is_open ? 'Hide the filters' : 'Filter …'}
        </Button>
      </div>
      {form}
    </>
  )
}

function OneFilter<K extends string>({
  filter: { name, label, placeholder, options, type = 'text', suggestions },
  value,
  onChange,
}: {
  filter: Filter<K>
  value: string
  onChange: (value: string) => void
}) {
  if (options !== undefined) return <SelectField label={label} value={value} options={options} onChange={onChange} />
  return (
    <>
      <TextField
        label={label}
        type={type}
        value={value}
        onChange={onChange}
        autoComplete="off"
        spellCheck={false}
        {...(placeholder === undefined ? {} : { placeholder })}
        {...(type === 'number' ? { min: 0 } : {})}
        {...(suggestions === undefined ? {} : { list: `filter-${name}` })}
      />
      {suggestions === undefined ? null : (
        <datalist id={`filter-${name}`}>
          {suggestions.map((suggestion) => (
            <option key={suggestion} value={suggestion} />
          ))}
        </datalist>
      )}
    </>
  )
}

function trimmed<K extends string>(state: UrlState<K>): UrlState<K> {
  return Object.fromEntries(Object.entries<string>(state).map(([name, value]) => [name, value.trim()])) as UrlState<K>
}

function emptied<K extends string>(state: UrlState<K>): UrlState<K> {
  return Object.fromEntries(Object.keys(state).map((name) => [name, ''])) as UrlState<K>
}

/** The time of a field of type datetime-local, which is in the time zone of the browser, as an instant. */
export function instantOf(local: string): string | undefined {
  const ms = Date.parse(local)
  return local === '' || Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}
