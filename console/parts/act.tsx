/** Controls for changes: buttons that report the result, and forms in a dialog. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { background } from '../client/background.ts';
import { type Asked, type Call, CallError, call, type ResponseOf } from '../client/client.ts';
import { useAsOf } from '../client/moment.ts';
import { refreshAll } from '../client/reads.ts';
import { Failure } from './basic.tsx';

/** Announces the result of an action at the bottom of the window and to screen readers. */
let announce: (text: string) => void = () => undefined;

export function Announcer() {
  const [text, setText] = useState('');
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    announce = (said) => {
      clearTimeout(timer);
      setText(said);
      timer = setTimeout(() => setText(''), 5_000);
    };
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class={`announcer ${text ? 'on' : ''}`} role="status" aria-live="polite">
      {text}
    </div>
  );
}

export const say = (text: string): void => announce(text);

/** Makes a write, then repeats the reads on the screen. */
export async function write<C extends Call>(name: C, asked: Asked, done?: string): Promise<ResponseOf<C>> {
  const { data } = await call(name, asked);
  refreshAll();
  if (done) say(done);
  return data;
}

interface ActProps {
  readonly children: ComponentChildren;
  readonly act: () => Promise<unknown>;
  /** Asked before it is done. */
  readonly confirm?: string;
  readonly danger?: boolean;
  readonly label?: string;
}

/** A button for a write. It is not offered in the past, which cannot be changed. */
export function Act({ children, act, confirm, danger = false, label }: ActProps) {
  const isPast = useAsOf() !== undefined;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<CallError>();
  const [asking, setAsking] = useState(false);
  if (isPast) return null;
  const run = async () => {
    setBusy(true);
    setError(undefined);
    setAsking(false);
    try {
      await act();
    } catch (reason) {
      if (!(reason instanceof CallError)) throw reason;
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  const start = () => background(run());
  return (
    <>
      <button
        type="button"
        class={danger ? 'danger' : ''}
        disabled={busy}
        aria-busy={busy}
        aria-label={label}
        onClick={confirm ? () => setAsking(true) : start}
      >
        {busy ? 'Working …' : children}
      </button>
      {asking && (
        <Dialog title="Are you sure?" close={() => setAsking(false)}>
          <p>{confirm}</p>
          <div class="buttons">
            <button type="button" onClick={() => setAsking(false)}>
              Cancel
            </button>
            <button type="button" class={danger ? 'danger' : 'main'} onClick={start}>
              {children}
            </button>
          </div>
        </Dialog>
      )}
      {error && (
        <Dialog title="That did not work" close={() => setError(undefined)}>
          <Failure error={error} />
        </Dialog>
      )}
    </>
  );
}

export function Dialog({
  title,
  close,
  children,
}: {
  readonly title: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    // The first field, not the button that closes the dialog.
    dialog.current?.querySelector<HTMLElement>('input, select, textarea')?.focus();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={close} onCancel={close}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={close}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly type?: 'text' | 'password' | 'number' | 'email' | 'url' | 'area' | 'json' | 'check';
  readonly value?: string | number | boolean | null;
  readonly options?: readonly (string | readonly [value: string, text: string])[];
  readonly required?: boolean;
  readonly hint?: string;
  readonly min?: number;
  /** Autocomplete value for the browser. */
  readonly complete?: 'username' | 'current-password';
}

export type Values = Record<string, unknown>;

function fieldValue({ name, type, label }: Field, data: FormData): unknown {
  if (type === 'check') return data.get(name) !== null;
  const text = String(data.get(name) ?? '');
  if (text === '') return undefined;
  if (type === 'number') return Number(text);
  if (type !== 'json') return type === 'password' ? text : text.trim();
  try {
    return JSON.parse(text);
  } catch {
    throw new CallError(`${label} is not valid JSON.`, { status: 0 });
  }
}

interface FormProps {
  readonly fields: readonly Field[];
  readonly submit: string;
  readonly send: (values: Values) => Promise<unknown>;
  readonly close?: () => void;
}

export function Form({ fields, submit, send, close }: FormProps) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<CallError>();
  const onSubmit = async (form: HTMLFormElement) => {
    setBusy(true);
    setError(undefined);
    try {
      const data = new FormData(form);
      const values = Object.fromEntries(fields.map((field) => [field.name, fieldValue(field, data)]));
      await send(values);
      close?.();
    } catch (reason) {
      if (!(reason instanceof CallError)) throw reason;
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        background(onSubmit(event.currentTarget));
      }}
    >
      {fields.map((field) => (
        <Input key={field.name} field={field} />
      ))}
      {error && <Failure error={error} />}
      <div class="buttons">
        {close && (
          <button type="button" onClick={close}>
            Cancel
          </button>
        )}
        <button type="submit" class="main" disabled={busy} aria-busy={busy}>
          {busy ? 'Working …' : submit}
        </button>
      </div>
    </form>
  );
}

function Input({ field }: { readonly field: Field }) {
  const { name, label, type = 'text', value, options, required = false, hint, min } = field;
  const id = useId();
  const common = { id, name, required, 'aria-describedby': hint ? `${id}-hint` : undefined };
  if (type === 'check')
    return (
      <label class="check">
        <input type="checkbox" name={name} defaultChecked={value === true} /> {label}
      </label>
    );
  const text = value === null || value === undefined ? '' : String(value);
  return (
    <div class="field">
      <label for={id}>
        {label}
        {!required && <span class="dim"> (optional)</span>}
      </label>
      {options ? (
        <select {...common} defaultValue={text}>
          {options.map((one) => {
            const [key, shown] = typeof one === 'string' ? [one, one.replaceAll('_', ' ')] : one;
            return (
              <option key={key} value={key} selected={key === text}>
                {shown}
              </option>
            );
          })}
        </select>
      ) : type === 'area' || type === 'json' ? (
        <textarea {...common} rows={type === 'json' ? 8 : 4} defaultValue={text} spellcheck={type !== 'json'} />
      ) : (
        <input
          {...common}
          type={type as 'text'}
          min={min}
          step="any"
          defaultValue={text}
          autocomplete={field.complete ?? (type === 'password' ? 'new-password' : 'off')}
        />
      )}
      {hint && (
        <small class="dim" id={`${id}-hint`}>
          {hint}
        </small>
      )}
    </div>
  );
}

/** A button that opens a form. */
export function FormButton({
  text,
  title,
  main = false,
  ...form
}: Omit<FormProps, 'close'> & { readonly text: string; readonly title: string; readonly main?: boolean }) {
  const isPast = useAsOf() !== undefined;
  const [open, setOpen] = useState(false);
  if (isPast) return null;
  return (
    <>
      <button type="button" class={main ? 'main' : ''} onClick={() => setOpen(true)}>
        {text}
      </button>
      {open && (
        <Dialog title={title} close={() => setOpen(false)}>
          <Form {...form} close={() => setOpen(false)} />
        </Dialog>
      )}
    </>
  );
}
