package io.nrt4j.net.libfabric;

/**
 * Offsets and constants of libfabric's ABI 1 on 64-bit machines. {@code FiLayoutTest} compares them with {@code offsetof}
 * of the installed headers.
 *
 * <p>Later versions only append to these structs; whatever libfabric fills is therefore allocated larger than needed and
 * zeroed, and hints are made by {@code fi_dupinfo(NULL)}.
 */
final class FiLayout {
    /** Version 1.17: what is asked for, and the least that is accepted. */
    static final int API_VERSION = 1 << 16 | 17;

    static final int INFO_NEXT = 0;
    static final int INFO_CAPS = 8;
    static final int INFO_MODE = 16;
    static final int INFO_ADDR_FORMAT = 24;
    static final int INFO_SRC_ADDR = 48;
    static final int INFO_TX_ATTR = 72;
    static final int INFO_RX_ATTR = 80;
    static final int INFO_EP_ATTR = 88;
    static final int INFO_DOMAIN_ATTR = 96;
    static final int INFO_FABRIC_ATTR = 104;

    static final int TX_ATTR_INJECT_SIZE = 40;
    static final int TX_ATTR_SIZE = 48;
    static final int RX_ATTR_SIZE = 48;
    static final int EP_ATTR_TYPE = 0;
    static final int EP_ATTR_MAX_MSG_SIZE = 16;
    static final int DOMAIN_ATTR_NAME = 8;
    static final int DOMAIN_ATTR_THREADING = 16;
    static final int DOMAIN_ATTR_CONTROL_PROGRESS = 20;
    static final int DOMAIN_ATTR_DATA_PROGRESS = 24;
    static final int DOMAIN_ATTR_MR_MODE = 36;
    static final int FABRIC_ATTR_PROV_NAME = 16;

    static final int FID_OPS = 16;
    static final int FI_OPS_CLOSE = 8;
    static final int FI_OPS_BIND = 16;
    static final int FI_OPS_CONTROL = 24;
    /** Of fid_fabric, fid_domain, fid_av and fid_cq, behind the fid; of fid_ep too. */
    static final int OBJECT_OPS = 24;
    static final int DOMAIN_MR_OPS = 32;
    static final int EP_CM_OPS = 32;
    static final int EP_TAGGED_OPS = 56;
    static final int MR_MEM_DESC = 24;

    static final int FABRIC_OPS_DOMAIN = 8;
    static final int DOMAIN_OPS_AV_OPEN = 8;
    static final int DOMAIN_OPS_CQ_OPEN = 16;
    static final int DOMAIN_OPS_ENDPOINT = 24;
    static final int MR_OPS_REG = 8;
    static final int AV_OPS_INSERT = 8;
    static final int AV_OPS_REMOVE = 32;
    static final int CM_OPS_SETNAME = 8;
    static final int CM_OPS_GETNAME = 16;
    static final int EP_OPS_CANCEL = 8;
    static final int CQ_OPS_READ = 8;
    static final int CQ_OPS_READERR = 24;
    static final int CQ_OPS_STRERROR = 56;
    static final int TAGGED_OPS_RECV = 8;
    static final int TAGGED_OPS_SEND = 32;
    static final int TAGGED_OPS_INJECT = 56;

    static final int AV_ATTR_TYPE = 0;
    static final int AV_ATTR_COUNT = 8;
    static final int CQ_ATTR_SIZE = 0;
    static final int CQ_ATTR_FORMAT = 16;
    static final int CQ_ATTR_WAIT_OBJ = 20;
    static final int CQ_ENTRY_CONTEXT = 0;
    static final int CQ_ENTRY_LEN = 16;
    static final int CQ_ENTRY_TAG = 40;
    static final int CQ_ENTRY_BYTES = 48;
    static final int CQ_ERR_CONTEXT = 0;
    static final int CQ_ERR_ERR = 56;
    static final int CQ_ERR_PROV_ERRNO = 60;
    static final int CQ_ERR_DATA = 64;
    /** Room for the error entry of any version. */
    static final int CQ_ERR_ROOM = 256;

    static final int EP_RDM = 3;
    static final long CAP_TAGGED = 1L << 3;
    static final long FLAG_RECV = 1L << 10;
    static final long FLAG_SEND = 1L << 11;
    static final long MODE_CONTEXT = 1L << 59;
    static final long MODE_CONTEXT2 = 1L << 52;
    static final int MR_LOCAL = 1 << 2;
    static final int MR_VIRT_ADDR = 1 << 4;
    static final int MR_ALLOCATED = 1 << 5;
    static final int MR_PROV_KEY = 1 << 6;
    static final int FORMAT_SOCKADDR_IN = 2;
    static final int FORMAT_SOCKADDR_IN6 = 3;
    static final int PROGRESS_MANUAL = 2;
    static final int THREAD_DOMAIN = 3;
    static final int AV_TABLE = 2;
    static final int CQ_FORMAT_TAGGED = 4;
    static final int WAIT_NONE = 0;
    static final int ENABLE = 6;
    static final long ADDR_UNSPEC = -1L;

    /** {@code struct fi_context2}: what a provider may use of an operation's context. */
    static final int CONTEXT_BYTES = 64;

    static final int ENOMEM = 12;
    static final int EAGAIN = 11;
    /** Too many open files, on the host and in the process. */
    static final int ENFILE = 23;
    static final int EMFILE = 24;
    static final int ECANCELED = 125;
    /** Answer of {@code fi_getinfo} when nothing fits. */
    static final int ENODATA = 61;
    /** Answer of a completion queue's read when an error entry is waiting. */
    static final int EAVAIL = 259;

    private FiLayout() {
    }
}
