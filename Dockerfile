# Build: everything, then only what runs.
FROM node:26.10.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json compile.mjs bundle.mjs LICENSE.unicode ./
COPY shared shared
COPY commands commands
COPY projections projections
COPY queries queries
COPY api api
COPY infra infra
COPY client client
COPY console console
RUN npm run build && npm prune --omit=dev

FROM node:26.10.0-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 DATA_DIR=/data
# Large blocks go back to the system when they are freed; glibc would soon keep them, some 50 MB after a start.
ENV MALLOC_MMAP_THRESHOLD_=131072
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "const h=process.env.HOST||'127.0.0.1',a={'0.0.0.0':'127.0.0.1','::':'[::1]'}[h]||(h.includes(':')?'['+h+']':h);fetch('http://'+a+':'+process.env.PORT+'/health/ready').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"]
ENTRYPOINT ["node", "--enable-source-maps", "dist/bin/signalbox.js"]
CMD ["start"]
