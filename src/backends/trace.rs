//! Reads the trace that libwayland writes for a client (`WAYLAND_DEBUG=client`), to find out on which
//! outputs the client has drawn.
//!
//! A buffer that was attached to a surface and committed counts as drawn once the compositor sends
//! `delete_id` for it; libwayland sends that only together with another event. Lines look like
//! `[3697967.855]  -> wl_surface@12.attach(wl_buffer@10, 0, 0)`; since libwayland 1.22 with `#` instead
//! of `@`.

/// Occurs in each line that matters, except those with [`UNWANTED`].
pub(super) const PROTOCOL: &str = "wl_";
pub(super) const UNWANTED: &str = "Could not find config for output ";

/// The progress of a client.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// The first exchange with the registry is complete, so all outputs are known.
    listed: bool,
    outputs: Vec<TracedOutput>,
    /// The number of outputs on which the client does not draw.
    unwanted: usize,
    /// Each surface, with an attached buffer that the compositor has not taken yet.
    attached: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct TracedOutput {
    /// The registry's number.
    global: u32,
    object: u32,
    surface: Option<u32>,
    drawn: bool,
}

impl Trace {
    pub(super) fn read(&mut self, line: &str) {
        // libwayland writes object numbers in two ways. Most of a client's own output has none.
        let line = if line.contains('#') {
            &line.replace('#', "@")
        } else {
            line
        };
        if line.contains(UNWANTED) {
            self.unwanted += 1;
        } else if let Some((_, request)) = line.split_once("-> ") {
            self.read_request(request);
        } else if line.contains("wl_callback@") && line.contains(".done(") {
            self.listed = true;
        } else if let Some(object) = number_after(line, "wl_display@1.delete_id(") {
            self.taken(object);
        } else if line.contains("wl_registry@")
            && let Some(global) = number_after(line, ".global_remove(")
        {
            self.outputs.retain(|output| output.global != global);
        }
    }

    /// Reads a request of the client; returns `None` if it does not matter here.
    fn read_request(&mut self, text: &str) -> Option<()> {
        if text.starts_with("wl_registry@") && text.contains(", \"wl_output\",") {
            let global = number_after(text, ".bind(")?;
            let object = number_after(text, "new id [unknown]@")?;
            self.outputs.push(TracedOutput {
                global,
                object,
                surface: None,
                drawn: false,
            });
        } else if text.contains(".get_layer_surface(") {
            let surface = number_after(text, ", wl_surface@")?;
            let output = number_after(text, ", wl_output@")?;
            self.outputs
                .iter_mut()
                .find(|known| known.object == output)?
                .surface = Some(surface);
        } else {
            let rest = text.strip_prefix("wl_surface@")?;
            let buffer = number_after(rest, ".attach(wl_buffer@")?;
            self.attached.retain(|&(_, old)| old != buffer);
            self.attached.push((leading_number(rest)?, buffer));
        }
        Some(())
    }

    fn taken(&mut self, buffer: u32) {
        let Some(at) = self
            .attached
            .iter()
            .position(|&(_, attached)| attached == buffer)
        else {
            return;
        };
        let (surface, _) = self.attached.swap_remove(at);
        let of = self
            .outputs
            .iter_mut()
            .find(|output| output.surface == Some(surface));
        if let Some(output) = of {
            output.drawn = true;
        }
    }

    /// The number of outputs on which the client has drawn.
    pub(super) fn drawn(&self) -> usize {
        self.outputs.iter().filter(|output| output.drawn).count()
    }

    /// Whether the client has drawn on every connected output that it has a picture for; false if there
    /// is no such output.
    pub(super) fn is_done(&self) -> bool {
        self.is_sent()
            && self
                .outputs
                .iter()
                .all(|output| output.surface.is_none() || output.drawn)
    }

    /// Whether the client has sent a picture for each of these outputs.
    pub(super) fn is_sent(&self) -> bool {
        let is_sent = |output: &TracedOutput| {
            let mut surfaces = self.attached.iter().map(|(surface, _)| Some(*surface));
            output.drawn || surfaces.any(|surface| surface == output.surface)
        };
        self.is_settled()
            && !self.is_idle()
            && self
                .outputs
                .iter()
                .all(|output| output.surface.is_none() || is_sent(output))
    }

    /// Whether the client has looked at all outputs and will draw on none of them.
    pub(super) fn is_idle(&self) -> bool {
        self.is_settled() && self.outputs.iter().all(|output| output.surface.is_none())
    }

    /// Whether every output has a surface or is left alone.
    fn is_settled(&self) -> bool {
        let decided = self
            .outputs
            .iter()
            .filter(|output| output.surface.is_some())
            .count();
        self.listed && decided + self.unwanted >= self.outputs.len()
    }
}

fn number_after(line: &str, mark: &str) -> Option<u32> {
    leading_number(&line[line.find(mark)? + mark.len()..])
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// swaybg 1.2 on two outputs, shortened.
    const TALK: &str = r#"
[ 516448.347]  -> wl_display@1.get_registry(new id wl_registry@2)
[ 516448.624]  -> wl_display@1.sync(new id wl_callback@3)
[ 516450.324] wl_registry@2.global(38, "wl_output", 4)
[ 516450.326]  -> wl_registry@2.bind(38, "wl_output", 4, new id [unknown]@8)
[ 516450.329] wl_registry@2.global(39, "wl_output", 4)
[ 516450.331]  -> wl_registry@2.bind(39, "wl_output", 4, new id [unknown]@9)
[ 516450.406] wl_callback@3.done(2)
[ 516450.720] wl_output@8.name("HEADLESS-1")
[ 516451.050]  -> zwlr_layer_shell_v1@6.get_layer_surface(new id zwlr_layer_surface_v1@11, wl_surface@3, wl_output@8, 0, "wallpaper")
[ 516451.378]  -> zwlr_layer_shell_v1@6.get_layer_surface(new id zwlr_layer_surface_v1@14, wl_surface@12, wl_output@9, 0, "wallpaper")
[ 516451.679] wl_display@1.delete_id(10)
[ 516501.664]  -> wl_surface@12.attach(wl_buffer@10, 0, 0)
[ 516501.670]  -> wl_surface@12.commit()
[ 516522.641]  -> wl_surface@3.attach(wl_buffer@16, 0, 0)
[ 516525.897] wl_display@1.delete_id(13)
[ 516525.912] wl_display@1.delete_id(10)
[ 516525.916] wl_display@1.delete_id(16)
"#;

    /// Reads lines; returns the number of outputs drawn on, whether the client is done, and whether it
    /// is idle.
    fn after(lines: &[&str]) -> (usize, bool, bool) {
        let mut trace = Trace::default();
        lines.iter().for_each(|line| trace.read(line));
        (trace.drawn(), trace.is_done(), trace.is_idle())
    }

    #[test]
    fn trace_is_done_once_every_output_is_drawn_on() {
        let lines: Vec<&str> = TALK.lines().collect();
        let last = lines.len() - 1;
        let is_sent = |count| {
            let mut trace = Trace::default();
            lines[..count].iter().for_each(|line| trace.read(line));
            trace.is_sent()
        };
        let attached = lines
            .iter()
            .rposition(|line| line.contains("attach"))
            .unwrap();
        assert!(!is_sent(8) && !is_sent(attached) && is_sent(attached + 1) && is_sent(last + 1));
        assert_eq!(after(&lines[..8]), (0, false, false), "nothing decided yet");
        assert_eq!(
            after(&lines[..last - 1]),
            (0, false, false),
            "attached is not taken"
        );
        assert_eq!(after(&lines[..last]), (1, false, false));
        assert_eq!(after(&lines), (2, true, false));
        let newer = TALK
            .replace('@', "#")
            .replace("]  ->", "] {Default Queue}  ->");
        assert_eq!(after(&newer.lines().collect::<Vec<_>>()), (2, true, false));
    }

    #[test]
    fn removed_output_is_not_waited_for() {
        let mut lines: Vec<&str> = TALK.lines().collect();
        lines.pop();
        lines.push("[ 516526.000] wl_registry@2.global_remove(38)");
        assert_eq!(after(&lines), (1, true, false));
        lines.push("[ 516526.001] wl_registry@2.global_remove(39)");
        assert_eq!(after(&lines), (0, false, true));
    }

    #[test]
    fn output_without_a_picture_is_not_waited_for() {
        let alone = |count: usize| {
            let said =
                "2026-11-21 06:03:32 - [main.c:289] Could not find config for output X ((null))";
            let mut lines: Vec<&str> = TALK.lines().take(8).collect();
            lines.extend(std::iter::repeat_n(said, count));
            after(&lines)
        };
        assert_eq!(alone(1), (0, false, false));
        assert_eq!(alone(2), (0, false, true));
    }
}
