//! Why a monitor shows what it shows.

use super::super::Error;
use super::super::call::Call;
use super::super::request::{Record, Request};
use super::super::stdout::Stdout;
use super::super::verb::{Argument, Kind, Verb};
use crate::wire::Why;

pub(super) const WHY: Verb = Verb::asking(
    &["why"],
    "Tell why each monitor shows what it shows",
    Request::get("/why?monitor={MONITOR}").shows::<Vec<Why>>(),
)
.arguments(&[Argument::optional("MONITOR", Kind::Monitor, "Only this monitor")])
.help("Who has put it there, what is due next, and what has failed since.");

impl Record for Vec<Why> {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        if self.is_empty() {
            return stdout.note("no monitor is connected");
        }
        self.into_iter().try_for_each(|why| stdout.say(why.text))
    }
}
