//! How much stack the calling thread has left. The JVM throws where there is too little, at whatever method
//! is entered next; the Java side asks first before it begins what must not be left half-way.

thread_local! {
    static LOWEST: usize = lowest();
}

/// The lowest address of this thread's stack; 0 if the system does not tell.
fn lowest() -> usize {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let attributes = attributes.as_mut_ptr();
    let (mut lowest, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised by the first call, read by the second and destroyed by the last.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes) != 0 {
            return 0;
        }
        libc::pthread_attr_getstack(attributes, &raw mut lowest, &raw mut size);
        libc::pthread_attr_destroy(attributes);
    }
    lowest as usize
}

/// Bytes of stack below the caller, about.
pub(crate) fn left() -> i64 {
    let here = 0u8;
    (&raw const here as usize).saturating_sub(LOWEST.with(|lowest| *lowest)) as i64
}
