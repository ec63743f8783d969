//! A plugin's folder: its manifest, its scaffold, its build.
