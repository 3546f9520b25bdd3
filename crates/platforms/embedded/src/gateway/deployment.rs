//! What an action becomes: program, size, body of `/init`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use windfall_core::{Allocation, FunctionId, MilliCpu};
use windfall_functions::{Kind, Runtime};
use windfall_openwhisk::{Action, Code};
use windfall_sandbox::{Bind, Program};

use super::GatewaySettings;
use crate::function::FunctionSpec;
use crate::pool::FunctionSettings;

/// The annotation by which an action reserves CPU, in cores.
pub(crate) const CPU_ANNOTATION: &str = "cpu";
/// The annotation that names the parameter with the visible input size.
pub(crate) const INPUT_ANNOTATION: &str = "input";

/// An action without CPU of its own gets one core for so much memory, as clouds that sell memory do.
const MIB_PER_CORE: u32 = 512;
/// Less is of no use to anyone.
const LEAST_CPU: u32 = 100;

/// A deployed action.
#[derive(Clone, Debug)]
pub(super) struct Deployed {
    pub(super) function: FunctionId,
    /// How to call it, or why it cannot be.
    pub(super) callable: Result<Callable, String>,
    /// As it was deployed.
    pub(super) action: Arc<Action>,
}

/// An action that can be called.
#[derive(Clone, Debug)]
pub(super) struct Callable {
    pub(super) spec: Arc<FunctionSpec>,
    /// The end of the body of `/run`, which is the same for every call.
    pub(super) suffix: Bytes,
}

/// Programs of runtimes, found once.
#[derive(Debug, Default)]
pub(super) struct Deployments {
    programs: Mutex<HashMap<Runtime, Result<windfall_functions::Program, String>>>,
}

impl Deployments {
    fn program(&self, runtime: Runtime) -> Result<windfall_functions::Program, String> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let found = programs.entry(runtime);
        found.or_insert_with(|| runtime.program().map_err(|error| error.to_string())).clone()
    }

    pub(super) fn callable(
        &self,
        action: &Action,
        settings: &GatewaySettings,
    ) -> Result<Callable, String> {
        let code = action.code().ok_or("a sequence has no code")?;
        let kind = Kind::parse(&code.kind).map_err(|error| error.to_string())?;
        let found = self.program(kind.runtime)?;
        let name = action.name.joined();
        let mut function =
            FunctionSettings::new(&name, kind.runtime.kind(), reservation(action, &kind));
        function.concurrency = action.limits.concurrency.max(1);
        function.most_instances = action.limits.instances;
        function.keep_alive = settings.keep_alive;
        let named = action.annotations.value(INPUT_ANNOTATION).and_then(Value::as_str);
        let input =
            named.or_else(|| kind.builtin.and_then(|one| one.input).map(|one| one.parameter));
        let spec = FunctionSpec {
            settings: function,
            environment: found.environment.clone(),
            program: program(found),
            isolation: settings.isolation,
            scratch: settings.scratch,
            init: init_body(action, code, &kind),
            timeout: action.limits.timeout,
            log_bytes: (action.limits.logs_mib as usize) << 20,
            input: input.map(str::to_owned),
        };
        let suffix = run_suffix(action, settings);
        Ok(Callable { spec: Arc::new(spec), suffix })
    }
}

/// What the user reserves: memory by OpenWhisk's limit, CPU by annotation, by what a built-in function needs, or by the
/// memory. 256 MiB without an annotation are half a core.
fn reservation(action: &Action, kind: &Kind) -> Allocation {
    let memory = action.limits.memory;
    let annotated = action.annotations.value(CPU_ANNOTATION).and_then(Value::as_f64);
    let cpu = annotated
        .and_then(|cores| MilliCpu::from_cores(cores).ok())
        .or_else(|| kind.builtin.map(|builtin| builtin.reservation.cpu))
        .unwrap_or_else(|| MilliCpu::new(memory.get() * 1000 / MIB_PER_CORE));
    Allocation { cpu: cpu.max(MilliCpu::new(LEAST_CPU)), memory }
}

fn program(found: windfall_functions::Program) -> Program {
    let mut arguments = vec![found.path.display().to_string()];
    arguments.extend(found.arguments);
    let bind = |path: std::path::PathBuf| Bind { source: path.clone(), target: path };
    Program {
        executable: found.path,
        arguments,
        files: found.read_only.into_iter().map(bind).collect(),
    }
}

fn init_body(action: &Action, code: &Code, kind: &Kind) -> Bytes {
    let text = match kind.builtin {
        Some(builtin) => builtin.name,
        None => &code.text,
    };
    let environment: Map<String, Value> = action
        .parameters
        .iter()
        .filter(|parameter| parameter.init)
        .map(|parameter| (parameter.key.clone(), parameter.value.clone()))
        .collect();
    let body = json!({ "value": {
        "name": action.name.name(),
        "main": code.main.as_deref().unwrap_or("main"),
        "code": text,
        "binary": code.binary,
        "env": environment,
    }});
    body.to_string().into()
}

fn run_suffix(action: &Action, settings: &GatewaySettings) -> Bytes {
    let fields = json!({
        "namespace": action.name.namespace().as_str(),
        "action_name": format!("/{}", action.name.joined().trim_start_matches('/')),
        "action_version": action.version.to_string(),
        "api_host": settings.api_host,
    });
    // An object without its opening brace, behind a comma.
    let text = fields.to_string();
    format!(",{}", &text[1..]).into()
}
