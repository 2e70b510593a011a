/** The unique names of a project: its slug and its ticket prefix. `commands/naming.ts` claims and releases them. */
import type { NameKind } from '../claims.ts';
import type { Claim, Named } from '../naming.ts';
import { existing, PROJECT_SLUG, type ProjectState, projectDecider, TICKET_PREFIX } from './projects.ts';

const holding =
  (held: (state: ProjectState, name: string) => boolean): NameKind<ProjectState>['holds'] =>
  (state, name) => {
    if (state.life === 'deleted') return 'never';
    if (state.life !== 'none') return held(state, name) ? 'yes' : 'not yet';
    // A stream whose first claim was voided never becomes a project (`decideCreate`).
    return Object.keys(state.givenUpNames).length > 0 ? 'never' : 'not yet';
  };

/** Slugs, unique per workspace: scope is the workspace id. */
export const projectSlugKind: NameKind<ProjectState> = {
  kind: PROJECT_SLUG,
  owner: projectDecider,
  holds: holding((state, slug) => state.slug === slug),
  taken: (slug) => `A project with the slug "${slug}" already exists, perhaps archived; send another slug.`,
};

/** Ticket prefixes, unique per workspace. */
export const ticketPrefixKind: NameKind<ProjectState> = {
  kind: TICKET_PREFIX,
  owner: projectDecider,
  holds: holding((state, prefix) => state.prefix === prefix),
  taken: (prefix) => `Another project, perhaps archived, has the ticket prefix ${prefix}; send another ticket_prefix.`,
};

/** Claims of the names of a project with these fields. */
export function claimsFor(
  workspace: number,
  { slug, ticket_prefix: ticketPrefix }: { readonly slug?: string; readonly ticket_prefix?: string | undefined },
): Claim<ProjectState>[] {
  const claims: Claim<ProjectState>[] = [];
  if (slug !== undefined) claims.push({ kind: projectSlugKind, scope: workspace, name: slug });
  if (ticketPrefix !== undefined) claims.push({ kind: ticketPrefixKind, scope: workspace, name: ticketPrefix });
  return claims;
}

export const namedProject: Named<ProjectState> = {
  decider: projectDecider,
  existing,
  held: (workspace, { slug, prefix }) => claimsFor(workspace, { slug, ticket_prefix: prefix }),
};
