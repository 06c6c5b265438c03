from tests.sources.dcgm.nodes import *
def test_x(drive):
    d = drive(node(gpu(), mig_gpu(1), t4(2), geforce(3)))
    for t in (0,1,2,3):
        b = d.read(t)
    for dev in b.devices: print(dev)
    for r in b.readings: print(r)
    for p in b.problems: print(p)
    print(b.details, d.report)
