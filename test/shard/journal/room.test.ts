import { expect } from 'chai'
import { describe, it } from 'mocha'
import { JournalRoom } from '../../../internal/shard/journal/room.ts'

const MAX = 1_000_000

function roomAt(bytes: number, maxBytes = MAX): JournalRoom {
  const room = new JournalRoom()
  room.told({ bytes, maxBytes }, room.answered)
  return room
}

describe('room in a journal', () => {
  it('has none left for commits at 80 %, and none to carry kept items forward at 90 %', () => {
    const room = roomAt(0.75 * MAX)
    expect(room.left('commits')).to.equal(0.05 * MAX)
    room.take(0.05 * MAX)
    expect(room.left('commits')).to.equal(0)
    expect(room.left('carrying')).to.be.closeTo(0.1 * MAX, 1)
    room.take(0.1 * MAX)
    expect(room.left('carrying')).to.be.at.most(0)
  })

  it('has no limit before the broker told one, nor where there is none', () => {
    expect(new JournalRoom().left('commits')).to.equal(Number.POSITIVE_INFINITY)
    expect(roomAt(MAX, -1).left('commits')).to.equal(Number.POSITIVE_INFINITY)
    expect(roomAt(MAX, -1).isUncertain).to.equal(false)
  })

  it('counts what the broker stores beside the records of a commit', () => {
    const room = roomAt(0)
    room.take(100)
    room.sent()
    expect(room.used).to.equal(612)
    room.stored(100)
    expect(room.used).to.equal(612)
    expect(room.answered).to.equal(612)
  })

  it('counts what was answered before the broker was asked once, and what is on its way beside it', () => {
    const room = roomAt(0)
    room.take(100)
    room.sent()
    room.stored(100)
    const { answered } = room
    room.take(50)
    room.told({ bytes: 600, maxBytes: MAX }, answered)
    expect(room.used).to.equal(650)
  })

  it('is uncertain once half of what was left is taken, or nothing is left', () => {
    const room = roomAt(0.6 * MAX)
    expect(room.isUncertain).to.equal(false)
    room.take(0.11 * MAX)
    expect(room.isUncertain).to.equal(true)
    expect(roomAt(0.8 * MAX).isUncertain).to.equal(true)
  })
})
