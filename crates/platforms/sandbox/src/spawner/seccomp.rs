//! The system call filter of sandboxed instances.
//!
//! A list of what is refused, as container runtimes have it, and not of what is allowed: functions are arbitrary
//! programs. Refused calls return EPERM.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

/// Calls that no function needs and that have opened kernels before.
const REFUSED: &[i64] = &[
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // The kernel itself: programs, modules, tracing, keys.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    // Files by handle go around mounts.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The machine's clock, swap, quotas and accounting.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
];

/// Flags of `clone` that make namespaces.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Address families a function may use. Others reach beyond its network namespace (`AF_VSOCK`) or into rare kernel
/// code; netlink is how a program lists its interfaces.
const FAMILIES: &[i32] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Bit of the system call number in the x32 variant of x86-64, whose numbers the list does not contain.
const X32_BIT: u32 = 0x4000_0000;

/// The filters of an instance, compiled once in the spawner.
pub(super) struct Filters(Vec<BpfProgram>);

impl Filters {
    /// Compiles them for this machine.
    pub(super) fn compile() -> Result<Self, seccompiler::BackendError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            REFUSED.iter().map(|call| (*call, Vec::new())).collect();
        let clone = NAMESPACES.iter().map(|flag| {
            let flag = *flag as u64;
            rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])
        });
        rules.insert(libc::SYS_clone, clone.collect::<Result<_, _>>()?);
        let other: Vec<(u8, SeccompCmpOp, u64)> =
            FAMILIES.iter().map(|family| (0, SeccompCmpOp::Ne, *family as u64)).collect();
        rules.insert(libc::SYS_socket, vec![rule(&other)?]);
        // Its end must follow the end of the spawner.
        let death = rule(&[(0, SeccompCmpOp::Eq, libc::PR_SET_PDEATHSIG as u64)])?;
        rules.insert(libc::SYS_prctl, vec![death]);
        let typing = rule(&[(1, SeccompCmpOp::Eq, libc::TIOCSTI)])?;
        rules.insert(libc::SYS_ioctl, vec![typing]);

        // The flags of clone3 lie in memory, where a filter cannot read them. A C library that learns that the call
        // does not exist uses clone.
        let no_clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        let mut filters = vec![filter(no_clone3, libc::ENOSYS)?, filter(rules, libc::EPERM)?];
        if cfg!(target_arch = "x86_64") {
            filters.push(no_x32());
        }
        Ok(Self(filters))
    }

    /// Puts this process under the filters. Needs `no_new_privs`.
    pub(super) fn apply(&self) -> io::Result<()> {
        for filter in &self.0 {
            apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|(argument, operator, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

fn filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: i32,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let refuse = SeccompAction::Errno(errno as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, TargetArch::try_from(ARCH)?)?.try_into()
}

/// Refuses every call with an x32 number.
fn no_x32() -> BpfProgram {
    let instruction = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    vec![
        // Load the number of the call: the first field of the data.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_BIT),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_and_are_short_enough_for_the_kernel() {
        let filters = Filters::compile().unwrap();
        // BPF_MAXINSNS.
        assert!(filters.0.iter().all(|filter| !filter.is_empty() && filter.len() < 4096));
    }
}
