//! An environment as a conversation of JSON lines, so that every language can act in it and every result
//! can be checked from outside.
//!
//! ```text
//! > {"reset": {"seed": 7}}
//! < {"observation": [0.5], "info": {"mask": [true, true]}}
//! > {"step": 1}                      by number; {"step": "right"} by name
//! < {"observation": [0.75], "reward": -0.01, "terminated": false, "truncated": false, "info": {...}}
//! > {"stap": 1}
//! < {"error": "..."}                 and the conversation goes on as if nothing had been said
//! ```
//!
//! A line in, a line out, always. `{"describe": {}}` answers with features and actions.

use serde_json::{Map, Value, json};
use windfall_core::Seed;

use crate::env::{End, Environment, Step};

/// A conversation with one environment.
#[derive(Debug)]
pub struct Conversation<E> {
    environment: E,
    observation: Vec<f32>,
    allowed: Vec<bool>,
    stage: Stage,
    /// Of the last reset that named one, and resets since.
    seed: (Seed, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    NotBegun,
    Running,
    Over,
}

impl<E: Environment> Conversation<E> {
    /// Before its first reset.
    pub fn new(environment: E) -> Self {
        let spec = environment.spec();
        let observation = vec![0.0; spec.features.len()];
        let allowed = vec![true; spec.actions.len()];
        let seed = (Seed::new(0), 0);
        Self { environment, observation, allowed, stage: Stage::NotBegun, seed }
    }

    /// The answer to a line, without the end of the line.
    pub fn answer(&mut self, line: &str) -> String {
        let answer = self.understand(line).unwrap_or_else(|problem| json!({ "error": problem }));
        answer.to_string()
    }

    fn understand(&mut self, line: &str) -> Result<Value, String> {
        let said: Value = serde_json::from_str(line).map_err(|error| {
            format!(
                "not a JSON object: {error}; say {{\"reset\": {{\"seed\": 7}}}} or {{\"step\": 0}}"
            )
        })?;
        let words = said.as_object().filter(|words| words.len() == 1);
        let (verb, argument) = words.and_then(|words| words.iter().next()).ok_or_else(|| {
            "an object with one key is needed: reset, step or describe".to_owned()
        })?;
        match verb.as_str() {
            "reset" => self.reset(argument),
            "step" => self.step(argument),
            "describe" => Ok(json!(self.environment.spec())),
            other => Err(format!("there is no `{other}`; there are reset, step and describe")),
        }
    }

    /// Starts an episode. Without a seed it is the next after the last one that was named.
    fn reset(&mut self, argument: &Value) -> Result<Value, String> {
        let options = match argument {
            Value::Null => &Map::new(),
            Value::Object(options) => options,
            other => {
                return Err(format!("reset is {other}, allowed is {{\"seed\": number}} or {{}}"));
            }
        };
        if let Some(other) = options.keys().find(|key| *key != "seed") {
            return Err(format!("reset has no option `{other}`; there is seed"));
        }
        let seed = match options.get("seed") {
            None | Some(Value::Null) => {
                self.seed.1 += 1;
                self.seed.0.member(self.seed.1)
            }
            Some(given) => {
                let number = given.as_u64().ok_or_else(|| {
                    format!("seed is {given}, allowed is a whole number from 0 to {}", u64::MAX)
                })?;
                self.seed = (Seed::new(number), 0);
                self.seed.0
            }
        };
        self.environment.reset(seed, &mut self.observation);
        self.stage = Stage::Running;
        Ok(json!({ "observation": self.observation, "info": self.info() }))
    }

    fn step(&mut self, argument: &Value) -> Result<Value, String> {
        let action = self.action(argument)?;
        match self.stage {
            Stage::Running => {}
            Stage::NotBegun => return Err("no episode has begun: reset first".to_owned()),
            Stage::Over => return Err("the episode is over: reset first".to_owned()),
        }
        let Step { reward, end } = self.environment.step(action, &mut self.observation);
        if end.is_over() {
            self.stage = Stage::Over;
        }
        Ok(json!({
            "observation": self.observation,
            "reward": reward,
            "terminated": end == End::Terminated,
            "truncated": end == End::Truncated,
            "info": self.info(),
        }))
    }

    /// An action by its number or its name, bare or as `{"action": ...}`.
    fn action(&self, argument: &Value) -> Result<usize, String> {
        let actions = &self.environment.spec().actions;
        let named = argument.get("action").unwrap_or(argument);
        let place = match named {
            Value::String(name) => actions.iter().position(|action| action == name),
            _ => named.as_u64().and_then(|place| usize::try_from(place).ok()),
        };
        place.filter(|place| *place < actions.len()).ok_or_else(|| {
            let last = actions.len().saturating_sub(1);
            format!("action is {named}, allowed is 0 to {last} or one of {}", actions.join(", "))
        })
    }

    fn info(&mut self) -> Value {
        self.environment.mask(&mut self.allowed);
        let mut info = json!({ "mask": self.allowed });
        for (name, value) in self.environment.info() {
            info[name] = json!(value);
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Corridor;

    fn talk(lines: &[&str]) -> Vec<Value> {
        let mut conversation = Conversation::new(Corridor::new());
        lines.iter().map(|line| serde_json::from_str(&conversation.answer(line)).unwrap()).collect()
    }

    #[test]
    fn an_episode_from_its_reset_to_its_end() {
        let said = talk(&[
            r#"{"reset": {"seed": 7}}"#,
            r#"{"step": 1}"#,
            r#"{"step": {"action": "right"}}"#,
            r#"{"step": 0}"#,
            r#"{"reset": {}}"#,
        ]);
        assert_eq!(said[0], json!({ "observation": [0.5], "info": { "mask": [true, true] } }));
        assert_eq!(said[1]["observation"], json!([0.75]));
        assert_eq!(
            (said[1]["terminated"].clone(), said[1]["truncated"].clone()),
            (json!(false), json!(false))
        );
        assert_eq!(said[2]["terminated"], json!(true));
        assert!((said[2]["reward"].as_f64().unwrap() - 0.99).abs() < 1e-6);
        assert_eq!(said[3], json!({ "error": "the episode is over: reset first" }));
        assert_eq!(said[4]["observation"], json!([0.5]));
    }

    #[test]
    fn what_is_not_understood_is_named_and_changes_nothing() {
        let said = talk(&[
            r#"{"step": 1}"#,
            r#"{"reset": {"seed": 1}}"#,
            "stap",
            r#"{"stap": 1}"#,
            r#"{"step": 1, "reset": {}}"#,
            r#"{"step": 2}"#,
            r#"{"step": "up"}"#,
            r#"{"step": -1}"#,
            r#"{"reset": {"seed": -7}}"#,
            r#"{"reset": {"sead": 7}}"#,
            r#"{"step": 1}"#,
        ]);
        let parts = [
            (0, "reset first"),
            (2, "not a JSON object"),
            (3, "`stap`"),
            (4, "one key"),
            (5, "action is 2, allowed is 0 to 1 or one of left, right"),
            (6, "\"up\""),
            (7, "-1"),
            (8, "seed is -7"),
            (9, "`sead`"),
        ];
        for (place, part) in parts {
            let problem = said[place]["error"].as_str().unwrap();
            assert!(problem.contains(part), "{problem}");
        }
        assert_eq!(said[10]["observation"], json!([0.75]));
    }
}
