// Fields of forms: a label, a description, the input and its error.
import {
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react'

type Described = { label: string; hint?: ReactNode; error?: string | undefined; is_hidden_label?: boolean }

const INPUT =
  'w-full min-w-0 rounded-md border border-line bg-page px-2.5 py-1.5 text-ink placeholder:text-soft aria-invalid:border-bad min-h-9 max-sm:min-h-10'

function Field({
  label,
  hint,
  error,
  is_hidden_label = false,
  children,
}: Described & { children: (ids: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: true }) => ReactNode }) {
  const id = useId()
  const notes = [hint === undefined ? null : `${id}-hint`, error === undefined ? null : `${id}-error`].filter(Boolean)
  const attributes = {
    id,
    ...(notes.length > 0 ? { 'aria-describedby': notes.join(' ') } : {}),
    ...(error === undefined ? {} : { 'aria-invalid': true as const }),
  }
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className={is_hidden_label ? 'sr-only' : 'font-medium'}>
        {label}
      </label>
      {children(attributes)}
      {hint === undefined ? null : (
        <p id={`${id}-hint`} className="text-xs text-soft">
          {hint}
        </p>
      )}
      {error === undefined ? null : (
        <p id={`${id}-error`} className="text-xs text-bad">
          {error}
        </p>
      )}
    </div>
  )
}

type InputProps = Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value' | 'className'>

export type TextFieldProps = Described & InputProps & { value: string; onChange: (value: string) => void }

export function TextField({ label, hint, error, is_hidden_label, onChange, ...rest }: TextFieldProps) {
  return (
    <Field {...pick({ label, hint, error, is_hidden_label })}>
      {(ids) => <input {...rest} {...ids} className={INPUT} onChange={(event) => onChange(event.target.value)} />}
    </Field>
  )
}

type AreaProps = Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'onChange' | 'value' | 'className'>

export function TextArea({
  label,
  hint,
  error,
  is_hidden_label,
  onChange,
  ...rest
}: Described & AreaProps & { value: string; onChange: (value: string) => void }) {
  return (
    <Field {...pick({ label, hint, error, is_hidden_label })}>
      {(ids) => (
        <textarea
          {...rest}
          {...ids}
          className={`${INPUT} font-mono`}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  )
}

type SelectProps = Omit<SelectHTMLAttributes<HTMLSelectElement>, 'onChange' | 'value' | 'className'>
export type Option = { value: string; text: string }

export function SelectField({
  label,
  hint,
  error,
  is_hidden_label,
  options,
  onChange,
  ...rest
}: Described & SelectProps & { value: string; options: readonly Option[]; onChange: (value: string) => void }) {
  return (
    <Field {...pick({ label, hint, error, is_hidden_label })}>
      {(ids) => (
        <select {...rest} {...ids} className={INPUT} onChange={(event) => onChange(event.target.value)}>
          {options.map(({ value, text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

export function CheckField({
  label,
  hint,
  checked,
  disabled,
  onChange,
}: {
  label: string
  hint?: string
  checked: boolean
  disabled?: boolean
  onChange: (checked: boolean) => void
}) {
  const id = useId()
  return (
    <div className="flex items-start gap-2">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        className="mt-1 size-4 accent-accent"
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={(event) => onChange(event.target.checked)}
      />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint === undefined ? null : (
          <p id={`${id}-hint`} className="text-xs text-soft">
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}

/** The described members that are set. */
function pick({
  label,
  hint,
  error,
  is_hidden_label,
}: {
  label: string
  hint: ReactNode
  error: string | undefined
  is_hidden_label: boolean | undefined
}): Described {
  return {
    label,
    ...(hint === undefined ? {} : { hint }),
    ...(error === undefined ? {} : { error }),
    ...(is_hidden_label === undefined ? {} : { is_hidden_label }),
  }
}
