//! Ports of a lab on loopback (levels api and capi; level nodes has a network of its own).
//!
//! The Cluster API managers bind their webhooks on all interfaces, so a lab cannot simply take an address of its own out of
//! 127.0.0.0/8. It takes a block of neighbouring ports instead, below the range from which the kernel gives ports to outgoing
//! connections: a port that was free a moment ago stays free. The first port of the block is held open by the lab for as long
//! as it lives, which is what tells parallel labs apart without a file that a killed run could leave behind.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

use crate::LabError;

const FIRST: u16 = 10_240;
const LAST: u16 = 32_000;
const BLOCK: u16 = 23;

/// A block of ports that belongs to this process until it is dropped.
#[derive(Debug)]
pub(crate) struct PortBlock {
    base: u16,
    _held: TcpListener,
}

impl PortBlock {
    /// Takes the first block that nobody uses and that has not the port in it that somebody asked for: the lab will open that one too.
    pub fn take_without(asked_for: Option<u16>) -> Result<Self, LabError> {
        // Labs of one machine begin at different places, so that parallel starts rarely look at the same block.
        let blocks = (LAST - FIRST) / BLOCK;
        let start = u16::try_from(std::process::id() % u32::from(blocks)).unwrap_or(0);
        (0..blocks)
            .map(|step| FIRST + (start + step) % blocks * BLOCK)
            .filter(|base| asked_for.is_none_or(|port| !(*base..base + BLOCK).contains(&port)))
            .find_map(|base| {
                let held = TcpListener::bind((Ipv4Addr::LOCALHOST, base)).ok()?;
                (1..BLOCK).all(|offset| is_free(base + offset)).then_some(Self { base, _held: held })
            })
            .ok_or(LabError::NoPorts { count: BLOCK })
    }

    /// The port with this number inside the block, from 1 on.
    pub fn port(&self, offset: u16) -> u16 {
        debug_assert!(offset > 0 && offset < BLOCK);
        self.base + offset
    }
}

/// Whether nobody listens on the port, on any interface.
fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

/// Opens a port somebody asked for, to see that it can be had or to keep it.
pub(crate) fn listen(address: Ipv4Addr, port: u16) -> Result<TcpListener, LabError> {
    TcpListener::bind((address, port)).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => LabError::PortNotPermitted { port },
        _ => LabError::PortTaken { port },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_labs_get_blocks_that_do_not_meet() {
        let first = PortBlock::take_without(None).unwrap();
        let second = PortBlock::take_without(None).unwrap();
        assert!(first.base.abs_diff(second.base) >= BLOCK, "{} and {}", first.base, second.base);
    }

    #[test]
    fn a_port_that_was_asked_for_is_in_no_block() {
        let base = { PortBlock::take_without(None).unwrap().base };
        for port in [base, base + 5, base + BLOCK - 1] {
            assert_ne!(PortBlock::take_without(Some(port)).unwrap().base, base, "{port}");
        }
    }

    #[test]
    fn a_block_with_a_taken_port_is_passed_over() {
        let base = { PortBlock::take_without(None).unwrap().base };
        let _somebody = TcpListener::bind((Ipv4Addr::LOCALHOST, base + 3)).unwrap();
        assert_ne!(PortBlock::take_without(None).unwrap().base, base);
    }
}
