//! HTTP as MAAS speaks it: forms in, JSON, text or HTML out, operations by `op`, OAuth 1.

pub mod answer;
pub mod call;
pub mod form;
pub mod oauth;
pub mod route;
