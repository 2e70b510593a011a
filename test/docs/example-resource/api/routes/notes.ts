/** Notes: list, write, revise, discard. */
import { defineCachedRoute, defineRoute, type Route } from '../../../../../api/http/route.ts';
import type { Services } from '../../../../../api/services.ts';
import { idParams } from '../../../../../shared/contract/common.ts';
import { notFound } from '../../../../../shared/errors.ts';
import { decideDiscard, decideRevise, noteDecider, noteStream, writeNote } from '../../commands/notes.ts';
import { findNote, listNotes } from '../../queries/notes.ts';
import { discardedAnswer, noteAnswer, noteBody, notesAnswer, notesQuery } from '../../shared/contract/notes.ts';

async function answerOf({ reads }: Services, workspace: number, id: number, status: number) {
  const note = await findNote(reads, workspace, id);
  // Discarded by somebody else since.
  if (!note) throw notFound('Note');
  return { status, body: { note } };
}

const list = defineCachedRoute({
  method: 'get',
  path: '/api/notes',
  tag: 'Agents',
  summary: 'Notes, newest first',
  access: 'viewer',
  query: notesQuery,
  responses: { 200: { description: 'A page of notes', schema: notesAnswer } },
  cache: { models: ['notes'], scope: 'workspace', caller: ['workspace'] },
  respond: async ({ query, identity, services }) => ({
    body: await listNotes(services.reads, identity.workspace, query),
  }),
});

const write = defineRoute({
  method: 'post',
  path: '/api/notes',
  tag: 'Agents',
  summary: 'Write a note',
  access: 'operator',
  limit: 'mutation',
  body: noteBody,
  responses: { 201: { description: 'The note', schema: noteAnswer } },
  async handle({ body, identity, services, command }) {
    const id = await writeNote(services.commands, command, body.text);
    return answerOf(services, identity.workspace, id, 201);
  },
});

const revise = defineRoute({
  method: 'put',
  path: '/api/notes/{id}',
  tag: 'Agents',
  summary: 'Replace the text of a note',
  access: 'operator',
  limit: 'mutation',
  params: idParams,
  body: noteBody,
  refuses: [404],
  responses: { 200: { description: 'The note', schema: noteAnswer } },
  async handle({ params, body, identity, services, command }) {
    const stream = noteStream(identity.workspace, params.id);
    await services.commands.execute(noteDecider, stream, command, (state) => decideRevise(state, body.text));
    return answerOf(services, identity.workspace, params.id, 200);
  },
});

const discard = defineRoute({
  method: 'delete',
  path: '/api/notes/{id}',
  tag: 'Agents',
  summary: 'Discard a note',
  access: 'operator',
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'Discarded', schema: discardedAnswer } },
  async handle({ params, identity, services, command }) {
    await services.commands.execute(noteDecider, noteStream(identity.workspace, params.id), command, decideDiscard);
    return { body: { success: true } };
  },
});

export const noteRoutes: readonly Route[] = [list, write, revise, discard];
