/** Controls for changes: buttons that report the result, and forms in a dialog. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { background } from '../client/background.ts';
import { type Asked, type Call, CallError, call, type ResponseOf } from '../client/client.ts';
import { useAsOf } from '../client/moment.ts';
import { refreshAll } from '../client/reads.ts';
import { Failure } from './basic.tsx';
import { type ChangeField, changedText, changesOf, type Field, shownValue, type Values, valuesOf } from './values.ts';

export type { Field, Values } from './values.ts';

/** Announces the result of an action at the bottom of the window and to screen readers. */
let announce: (text: string) => void = () => undefined;

export function Announcer() {
  const [text, setText] = useState('');
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    announce = (said) => {
      clearTimeout(timer);
      setText(said);
      // Long sentences take longer to read.
      timer = setTimeout(() => setText(''), Math.max(5_000, said.length * 90));
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

interface FormProps {
  readonly fields: readonly Field[];
  readonly submit: string;
  readonly send: (values: Values) => Promise<unknown>;
  readonly close?: () => void;
}

/** A form for something new: fields that are empty are not sent. */
export const Form = ({ send, ...props }: FormProps) => (
  <Fields {...props} submitted={(fields, data) => send(valuesOf(fields, data))} />
);

interface ChangeFormProps {
  readonly fields: readonly ChangeField[];
  /** Is sent only what differs from the record. */
  readonly send: (changes: Values) => Promise<unknown>;
  readonly close?: () => void;
}

/** A form that changes a record. It sends the fields that were changed, and says which these were. */
export const ChangeForm = ({ send, ...props }: ChangeFormProps) => (
  <Fields
    {...props}
    submit="Save"
    submitted={async (fields, data) => {
      const { values, labels } = changesOf(fields, data);
      if (labels.length > 0) await send(values);
      say(changedText(labels));
    }}
  />
);

interface FieldsProps<F extends Field> {
  readonly fields: readonly F[];
  readonly submit: string;
  /** @param fields with the values that they had when the form was opened */
  readonly submitted: (fields: readonly F[], data: FormData) => Promise<unknown>;
  readonly close?: (() => void) | undefined;
}

function Fields<F extends Field>({ fields, submit, submitted, close }: FieldsProps<F>) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<CallError>();
  // Live data goes on changing the record behind an open form; it must not change what was chosen in the form.
  const [opened] = useState(fields);
  const kept = fields.map((field) => {
    const { value } = opened.find(({ name }) => name === field.name) ?? field;
    return value === undefined ? field : { ...field, value };
  });
  const onSubmit = async (form: HTMLFormElement) => {
    setBusy(true);
    setError(undefined);
    try {
      await submitted(kept, new FormData(form));
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
      {kept.map((field) => (
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

/** The options of a field; what the record has is among them, so that saving does not change it unseen. */
function optionsOf({ options = [], ...field }: Field): readonly (readonly [value: string, text: string])[] {
  const pairs = options.map((one) => (typeof one === 'string' ? ([one, one.replaceAll('_', ' ')] as const) : one));
  const value = shownValue(field);
  return field.value === undefined || pairs.some(([key]) => key === value) ? pairs : [[value, value], ...pairs];
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
  const text = shownValue(field);
  return (
    <div class="field">
      <label for={id}>
        {label}
        {!required && <span class="dim"> (optional)</span>}
      </label>
      {options ? (
        <select {...common}>
          {optionsOf(field).map(([key, shown]) => (
            <option key={key} value={key} selected={key === text}>
              {shown}
            </option>
          ))}
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

interface OpenerProps {
  readonly text: string;
  readonly title: string;
  readonly main?: boolean;
  readonly children: (close: () => void) => ComponentChildren;
}

/** A button that opens a dialog. It is not offered in the past, which cannot be changed. */
function Opener({ text, title, main = false, children }: OpenerProps) {
  const isPast = useAsOf() !== undefined;
  const [open, setOpen] = useState(false);
  if (isPast) return null;
  const close = () => setOpen(false);
  return (
    <>
      <button type="button" class={main ? 'main' : ''} onClick={() => setOpen(true)}>
        {text}
      </button>
      {open && (
        <Dialog title={title} close={close}>
          {children(close)}
        </Dialog>
      )}
    </>
  );
}

/** A button that opens a form. */
export const FormButton = ({
  text,
  title,
  main,
  ...form
}: Omit<FormProps, 'close'> & Omit<OpenerProps, 'children'>) => (
  <Opener text={text} title={title} main={main}>
    {(close) => <Form {...form} close={close} />}
  </Opener>
);

/** A button that opens a form which changes a record. */
export const ChangeButton = ({ title, ...form }: Omit<ChangeFormProps, 'close'> & { readonly title: string }) => (
  <Opener text="Change" title={title}>
    {(close) => <ChangeForm {...form} close={close} />}
  </Opener>
);
