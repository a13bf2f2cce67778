"""What a LiDAR and a radar send: points, packets, the distortion of a sweep, and the cube behind a list of objects.

>>> points = lidar_points_per_sweep(beams=128, firing_s=53.3e-6, sweeps_per_s=10, returns=1)
>>> round(points)
240150
"""

from threeloops import checks


def lidar_points_per_sweep(*, beams: int, firing_s: float, sweeps_per_s: float, returns: int) -> float:
    """Points of one revolution.

    Formula:  beams * returns / (time of a firing * revolutions/s): the columns are what a revolution has time for
    Assumes:  all beams fire once per firing time, every pulse comes back `returns` times; the sky returns nothing, so
              a real cloud holds less
    Source:   by definition
    Counted:  simulate.driving.sensors.lidar_second

    >>> lidar_points_per_sweep(beams=64, firing_s=50e-6, sweeps_per_s=20, returns=2)
    128000.0
    """
    checks.count(beams=beams, returns=returns)
    checks.positive(firing_s=firing_s, sweeps_per_s=sweeps_per_s)
    return beams * returns / (firing_s * sweeps_per_s)


def lidar_bytes_per_s(*, beams: int, point_bytes: int, firings: int, other_bytes: int, firing_s: float) -> float:
    """Bytes per second of the packets that a LiDAR sends, one return a pulse.

    Formula:  (beams * firings of a packet * bytes of a point + other bytes of a packet) / (firings * time of a firing)
    Assumes:  other bytes hold everything else: network headers, azimuths, time stamp
    Source:   Velodyne, VLS-128 user manual, sections 8.2 and 9.3 (3 firings, points of 3 bytes, packets of 1,248 bytes)
    Counted:  simulate.driving.sensors.lidar_packets

    >>> round(lidar_bytes_per_s(beams=128, point_bytes=3, firings=3, other_bytes=96, firing_s=53.3e-6))
    7804878
    """
    checks.count(beams=beams, point_bytes=point_bytes, firings=firings)
    checks.count(at_least=0, other_bytes=other_bytes)
    checks.positive(firing_s=firing_s)
    return (beams * firings * point_bytes + other_bytes) / (firings * firing_s)


def lidar_bytes_per_sweep(*, packets_per_s: float, packet_bytes: int, returns: int, sweeps_per_s: float) -> float:
    """Bytes of one revolution.

    Formula:  returns * packets/s * bytes of a packet / revolutions/s
    Units:    packets_per_s as a manual gives them, with one return a pulse
    Assumes:  a second return is sent in packets of its own: twice as many of the same size
    Source:   Velodyne, VLS-128 user manual, sections 8.2 and 9.3 (6,253.9 packets of 1,248 bytes per second, twice as
              many with two returns)
    Counted:  simulate.driving.sensors.lidar_packets

    >>> lidar_bytes_per_sweep(packets_per_s=5000, packet_bytes=1200, returns=3, sweeps_per_s=20)
    900000.0
    """
    checks.count(packet_bytes=packet_bytes, returns=returns)
    checks.positive(packets_per_s=packets_per_s, sweeps_per_s=sweeps_per_s)
    return returns * packets_per_s * packet_bytes / sweeps_per_s


def sweep_shift_m(*, speed_m_per_s: float, sweeps_per_s: float, turned_share: float) -> float:
    """How far from its place a point is put when the whole sweep is taken for one moment, that of its first column.

    Formula:  speed * turned share / revolutions/s
    Assumes:  constant speed, a scene that stands still
    Source:   by definition of a constant speed
    Counted:  simulate.driving.sensors.swept_wall

    >>> sweep_shift_m(speed_m_per_s=30, sweeps_per_s=10, turned_share=0.5)
    1.5
    """
    checks.non_negative(speed_m_per_s=speed_m_per_s)
    checks.positive(sweeps_per_s=sweeps_per_s)
    checks.fraction(turned_share=turned_share)
    return speed_m_per_s * turned_share / sweeps_per_s


def radar_cube_bytes(*, samples: int, chirps: int, transmitters: int, receivers: int, bytes_per_sample: int) -> int:
    """Bytes of the data cube of one radar frame.

    Formula:  samples of a chirp * chirps per transmitter * transmitters * receivers * bytes of a sample
    Assumes:  transmitters send one after the other (time division); a complex sample of two 16-bit numbers is 4 bytes
    Source:   Texas Instruments, E2E forum, thread 1398085 (receivers * transmitters * chirps * samples)
    Counted:  simulate.driving.sensors.radar_cube

    >>> radar_cube_bytes(samples=256, chirps=128, transmitters=3, receivers=4, bytes_per_sample=4)
    1572864
    """
    checks.count(samples=samples, chirps=chirps, transmitters=transmitters, receivers=receivers)
    checks.count(bytes_per_sample=bytes_per_sample)
    return samples * chirps * transmitters * receivers * bytes_per_sample
