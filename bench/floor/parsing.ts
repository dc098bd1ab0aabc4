/** The packed floor of the comparison of other systems (its `KOA=1 PACK=1`): the body is parsed and its key checked. */
import { listen } from '../peers/node/front.ts'
import { append } from './append.ts'

listen(async (_item, raw) => {
  if (!(await append(raw))) throw new Error('not stored')
})
