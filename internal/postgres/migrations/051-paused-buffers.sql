-- Since when, and why, the service itself has disabled a buffer (docs/reference/buffers.md, "Automatic pause"). NULL: it
-- has not, or an older node has.
ALTER TABLE buffers
  ADD COLUMN paused_at timestamptz,
  ADD COLUMN paused_reason text CHECK (paused_reason IN ('consecutive_dead_letters')),
  ADD CONSTRAINT buffers_paused_whole CHECK ((paused_at IS NULL) = (paused_reason IS NULL));

-- Whoever enables the row, an older node too, need not know of the pause.
CREATE FUNCTION end_pause() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.paused_at := NULL;
  NEW.paused_reason := NULL;
  RETURN NEW;
END $$;
CREATE TRIGGER buffers_end_pause BEFORE UPDATE ON buffers
  FOR EACH ROW WHEN (NEW.enabled AND NEW.paused_at IS NOT NULL) EXECUTE FUNCTION end_pause();
