//! A VFS for SQLite that puts a [`Disk`] in front of SQLite's own VFS: the only `unsafe` code of the workspace.
//!
//! The shim is the default VFS of the process, so the shipped store opens files through it unchanged. A file in the
//! folder of a disk is opened in both layers: the file of the ordinary VFS lies behind ours in the memory that SQLite
//! allocates, and performs all reads, writes and locks of the running machine. The disk records each call first and
//! returns an error if the power is off. Syncs are not forwarded. Files in other folders use the ordinary VFS only.
//!
//! A panic in this file aborts the process, because it cannot unwind through C.
#![allow(unsafe_code, reason = "a VFS is a table of C functions over memory that SQLite owns")]

use super::disk::{Disk, FileUse, PowerOff};
use super::file::Handle;
use rusqlite::ffi;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The head of our file; the file of the ordinary VFS follows it.
#[repr(C)]
struct Shim {
    base: ffi::sqlite3_file,
    /// From `Box::into_raw`; owned by this file.
    handle: *mut Handle,
}

static ORDINARY: AtomicPtr<ffi::sqlite3_vfs> = AtomicPtr::new(ptr::null_mut());

/// Makes the shim the default VFS of this process, once.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: SQLite initialises itself here; a registered VFS lives until the process ends, and so does the leaked memory.
        unsafe {
            let ordinary = ffi::sqlite3_vfs_find(ptr::null());
            assert!(!ordinary.is_null(), "SQLite has a default VFS");
            ORDINARY.store(ordinary, Ordering::Release);
            // The functions that are not replaced do not use their VFS argument.
            let shim = Box::leak(Box::new(*ordinary));
            shim.pNext = ptr::null_mut();
            shim.zName = c"outlast-power".as_ptr();
            shim.szOsFile += c_int::try_from(size_of::<Shim>()).unwrap_or(c_int::MAX);
            shim.xOpen = Some(open);
            shim.xDelete = Some(delete);
            let registered = ffi::sqlite3_vfs_register(shim, 1);
            assert_eq!(registered, ffi::SQLITE_OK, "the VFS is registered");
        }
    });
}

/// Without `xFetch`, because writes to mapped memory would bypass the disk.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// The file of the ordinary VFS.
///
/// # Safety
/// `file` is one that [`open`] made.
unsafe fn inner(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: `szOsFile` has room for both, and the size of the head keeps the alignment of pointers.
    unsafe { file.cast::<u8>().add(size_of::<Shim>()).cast() }
}

/// # Safety
/// `file` is one that [`open`] made and that is not closed; SQLite uses a file from one thread at a time.
unsafe fn handle<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Handle {
    // SAFETY: set by `open`, freed by `close`.
    unsafe { &mut *(*file.cast::<Shim>()).handle }
}

/// Calls a method of the ordinary file.
macro_rules! forward {
    ($method:ident, $file:expr $(, $argument:expr)*) => {{
        // SAFETY: SQLite calls us with an open file of ours; the one behind it is open as long, and its VFS has every
        // method of version 2.
        unsafe {
            let file = inner($file);
            match (*(*file).pMethods).$method {
                Some(method) => method(file $(, $argument)*),
                None => unreachable!("the ordinary VFS has no {}", stringify!($method)),
            }
        }
    }};
}

/// Performs the call only if the disk reports that the power is on, else returns `$failed`.
macro_rules! unless_off {
    ($client_output:expr, $failed:expr, $then:expr) => {
        match $client_output {
            Ok(()) => $then,
            Err(PowerOff) => $failed,
        }
    };
}

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let ordinary = ORDINARY.load(Ordering::Acquire);
    // SAFETY: `name` is null or a C string; `file` has room for a file of ours, so for an ordinary one too.
    unsafe {
        let Some(xopen) = (*ordinary).xOpen else { return ffi::SQLITE_CANTOPEN };
        let Some((file_use, (disk, file_name))) = use_of(flags).zip(disk_of(name)) else {
            return xopen(ordinary, name, file, flags, out_flags);
        };
        (*file).pMethods = ptr::null();
        unless_off!(disk.read_only_call(), return ffi::SQLITE_CANTOPEN, {});
        let behind = inner(file);
        let status = xopen(ordinary, name, behind, flags, out_flags);
        if status != ffi::SQLITE_OK {
            return status;
        }
        let Ok(handle) = disk.open_file(&file_name, file_use) else {
            if let Some(close) = (*(*behind).pMethods).xClose {
                close(behind);
            }
            return ffi::SQLITE_CANTOPEN;
        };
        (*file.cast::<Shim>()).handle = Box::into_raw(Box::new(handle));
        (*file).pMethods = &raw const METHODS;
        ffi::SQLITE_OK
    }
}

fn use_of(flags: c_int) -> Option<FileUse> {
    match flags {
        flags if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => Some(FileUse::Database),
        flags if flags & ffi::SQLITE_OPEN_WAL != 0 => Some(FileUse::Log),
        flags if flags & ffi::SQLITE_OPEN_MAIN_JOURNAL != 0 => Some(FileUse::Journal),
        // Temporary files are not used after a power cut.
        _ => None,
    }
}

/// # Safety
/// `name` is null or a C string.
unsafe fn disk_of(name: *const c_char) -> Option<(std::sync::Arc<Disk>, String)> {
    if name.is_null() {
        return None;
    }
    // SAFETY: as above.
    Disk::of(unsafe { CStr::from_ptr(name) }.to_str().ok()?)
}

unsafe extern "C" fn delete(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_folder: c_int) -> c_int {
    let ordinary = ORDINARY.load(Ordering::Acquire);
    // SAFETY: `name` is a C string, and the ordinary VFS is never freed.
    unsafe {
        let Some(xdelete) = (*ordinary).xDelete else { return ffi::SQLITE_IOERR_DELETE };
        match disk_of(name) {
            None => xdelete(ordinary, name, sync_folder),
            Some((disk, file_name)) => unless_off!(
                disk.delete(&file_name, sync_folder != 0),
                ffi::SQLITE_IOERR_DELETE,
                xdelete(ordinary, name, 0)
            ),
        }
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let closed = forward!(xClose, file);
    // SAFETY: made by `Box::into_raw` in `open`; SQLite closes a file once.
    drop(unsafe { Box::from_raw((*file.cast::<Shim>()).handle) });
    closed
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, to: *mut c_void, len: c_int, at: i64) -> c_int {
    // SAFETY: SQLite calls with an open file of ours.
    let client_output = unsafe { handle(file) }.read_only_call();
    unless_off!(client_output, ffi::SQLITE_IOERR_READ, forward!(xRead, file, to, len, at))
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, from: *const c_void, len: c_int, at: i64) -> c_int {
    let (Ok(length), Ok(offset)) = (usize::try_from(len), usize::try_from(at)) else {
        return ffi::SQLITE_IOERR_WRITE;
    };
    // SAFETY: SQLite calls with an open file of ours, and `from` holds `len` bytes.
    let client_output =
        unsafe { handle(file).write(offset, std::slice::from_raw_parts(from.cast(), length)) };
    unless_off!(client_output, ffi::SQLITE_IOERR_WRITE, forward!(xWrite, file, from, len, at))
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, len: i64) -> c_int {
    let Ok(length) = usize::try_from(len) else { return ffi::SQLITE_IOERR_TRUNCATE };
    // SAFETY: SQLite calls with an open file of ours.
    let client_output = unsafe { handle(file) }.truncate(length);
    unless_off!(client_output, ffi::SQLITE_IOERR_TRUNCATE, forward!(xTruncate, file, len))
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: SQLite calls with an open file of ours.
    let client_output = unsafe { handle(file) }.sync();
    unless_off!(client_output, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_OK)
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: SQLite calls with an open file of ours.
    let client_output = unsafe { handle(file) }.read_only_call();
    unless_off!(client_output, ffi::SQLITE_IOERR_FSTAT, forward!(xFileSize, file, size))
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite calls with an open file of ours.
    let client_output = unsafe { handle(file) }.read_only_call();
    unless_off!(client_output, ffi::SQLITE_IOERR_LOCK, forward!(xLock, file, level))
}

/// Unlocking also works without power, so that the files can be closed after a cut.
unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    forward!(xUnlock, file, level)
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, held: *mut c_int) -> c_int {
    forward!(xCheckReservedLock, file, held)
}

unsafe extern "C" fn file_control(file: *mut ffi::sqlite3_file, op: c_int, argument: *mut c_void) -> c_int {
    forward!(xFileControl, file, op, argument)
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    forward!(xSectorSize, file)
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    forward!(xDeviceCharacteristics, file)
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    to: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite calls with an open file of ours.
    let client_output = unsafe { handle(file) }.read_only_call();
    unless_off!(client_output, ffi::SQLITE_IOERR_SHMMAP, forward!(xShmMap, file, region, size, extend, to))
}

unsafe extern "C" fn shm_lock(file: *mut ffi::sqlite3_file, offset: c_int, n: c_int, flags: c_int) -> c_int {
    if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
        return forward!(xShmLock, file, offset, n, flags);
    }
    // SAFETY: SQLite calls with an open file of ours.
    let client_output = unsafe { handle(file) }.read_only_call();
    unless_off!(client_output, ffi::SQLITE_IOERR_SHMLOCK, forward!(xShmLock, file, offset, n, flags))
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    forward!(xShmBarrier, file);
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    forward!(xShmUnmap, file, delete)
}
