/** Notes: list, write, revise, discard. */
import { defineCachedRoute, defineRoute, type Route } from '../../../../../api/http/route.ts';
import { idParams } from '../../../../../shared/contract/common.ts';
import {
  decideDiscard,
  decideRevise,
  type NoteState,
  noteDecider,
  noteStream,
  writeNote,
} from '../../commands/notes.ts';
import { listNotes, noteAfter } from '../../queries/notes.ts';
import { discardedAnswer, noteAnswer, noteBody, notesAnswer, notesQuery } from '../../shared/contract/notes.ts';

const list = defineCachedRoute({
  method: 'get',
  path: '/api/notes',
  summary: 'Notes, newest first',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: notesQuery,
  responses: { 200: { description: 'A page of notes', schema: notesAnswer } },
  cache: { models: ['notes'] },
  respond: ({ query, identity, services }) => listNotes(services.reads, identity.workspace, query),
});

const write = defineRoute({
  method: 'post',
  path: '/api/notes',
  summary: 'Write a note',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  body: noteBody,
  responses: { 201: { description: 'The note', schema: noteAnswer } },
  async respond({ body, identity, services, command }) {
    const { id, executed } = await writeNote(services.commands, command, body.text);
    return { note: await noteAfter(services.records, identity.workspace, id, executed) };
  },
});

const revise = defineRoute({
  method: 'put',
  path: '/api/notes/{id}',
  summary: 'Replace the text of a note',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  params: idParams,
  body: noteBody,
  refuses: [404],
  responses: { 200: { description: 'The note', schema: noteAnswer } },
  async respond({ params, body, identity, services, command }) {
    const stream = noteStream(identity.workspace, params.id);
    const decide = (state: NoteState) => decideRevise(state, body.text);
    const executed = await services.commands.execute(noteDecider, stream, command, decide);
    return { note: await noteAfter(services.records, identity.workspace, params.id, executed) };
  },
});

const discard = defineRoute({
  method: 'delete',
  path: '/api/notes/{id}',
  summary: 'Discard a note',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'Discarded', schema: discardedAnswer } },
  async respond({ params, identity, services, command }) {
    await services.commands.execute(noteDecider, noteStream(identity.workspace, params.id), command, decideDiscard);
    return { success: true };
  },
});

export const noteRoutes: readonly Route[] = [list, write, revise, discard];
